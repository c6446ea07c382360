// TimingData: operands of kernels that are timed.
//
// Zeros would give wrong times: memory writes zero lines faster than data.  Small positive numbers
// keep square roots and logarithms finite; integers are zero, which is a valid index or label.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "ridge/core/dtype.h"

namespace ridge {

class TimingData {
 public:
  // Uses up to `threads` threads where that is faster.
  void Fill(DType dtype, int threads, std::byte* data, int64_t bytes);

 private:
  const std::vector<std::byte>& PatternOf(DType dtype);
  double Draw();

  std::map<DType, std::vector<std::byte>> patterns_;
  uint32_t state_ = 12345;
};

}  // namespace ridge
