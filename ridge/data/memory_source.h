// MemorySource: samples held as one tensor per field, sample number first.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "ridge/core/tensor.h"
#include "ridge/data/source.h"

namespace ridge {

// A tensor of zeros for `type`, or kOutOfMemory when this machine has too little memory now.
// Readers of files make all their large tensors here, after checking that the file can fill them.
Result<Tensor> MakeTensor(const std::string& where, TensorType type);

using NamedTensor = std::pair<std::string, Tensor>;

class MemorySource : public Source {
 public:
  // Fails with kInvalidData, naming `name`, when the first dimensions differ or there is no sample.
  // Finds the number of classes of each integer scalar.
  static Result<SourcePtr> Create(const std::string& name, std::vector<NamedTensor> fields);

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override;
  const void* View(int64_t index, int field) const override;
  int64_t resident_bytes() const override;

 private:
  MemorySource(std::string name, std::vector<Field> fields, int64_t size,
               std::vector<Tensor> tensors);

  std::vector<Tensor> tensors_;  // [size, ...field]
};

}  // namespace ridge
