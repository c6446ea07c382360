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

// Where the samples stand in a text file.
struct TextLines {
  std::string path;
  std::vector<uint32_t> lines;  // of each sample, from 1; empty: not known
};

class MemorySource : public Source {
 public:
  // Fails with kInvalidData, naming `name`, when the first dimensions differ or there is no sample.
  // Finds the number of classes of each integer scalar.
  static Result<SourcePtr> Create(const std::string& name, std::vector<NamedTensor> fields,
                                  TextLines lines = {});

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override;
  const void* View(int64_t index, int field) const override;
  std::string Origin(int64_t index) const override;
  int64_t resident_bytes() const override;

 private:
  MemorySource(std::string name, std::vector<Field> fields, int64_t size,
               std::vector<Tensor> tensors, TextLines lines);

  std::vector<Tensor> tensors_;  // [size, ...field]
  TextLines lines_;
};

}  // namespace ridge
