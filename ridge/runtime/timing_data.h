// TimingData: operands of kernels that are timed.
//
// Zeros would give wrong times: memory writes zero lines faster than data.  Small positive numbers
// keep square roots and logarithms finite; integers are zero, which is a valid index or label.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "ridge/backend/backend.h"
#include "ridge/core/dtype.h"

namespace ridge {

class TimingData {
 public:
  // [offset, offset + bytes) of `memory`, with all threads of the backend where that is faster.
  Status Fill(DType dtype, Backend& backend, const Memory& memory, int64_t offset, int64_t bytes);

 private:
  const std::vector<std::byte>& PatternOf(DType dtype);
  double Draw();

  std::map<DType, std::vector<std::byte>> patterns_;
  uint32_t state_ = 12345;
};

}  // namespace ridge
