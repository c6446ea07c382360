// StridedCopy: moves an array between two strided views, elements of 1, 2, 4 or 8 bytes.
//
// Neighbouring dimensions that are contiguous on both sides are merged; what is contiguous in both
// is copied by memcpy; where the innermost dimension of the one is not that of the other (a
// transpose), small squares are copied so that each cache line is used whole.
#pragma once
#include "ridge/core/shape.h"

namespace ridge::cpu {

struct StridedCopy {
  Dims dims;
  Dims from_strides, to_strides;  // in elements; may be 0 or negative on the `from` side
  int64_t from_base = 0, to_base = 0;
  int64_t element_bytes = 4;

  // REQUIRES: no extent is 0.  Merges dimensions; call once before Run.
  void Simplify();
  // The share of one of `parts`.
  void Run(const void* from, void* to, int parts, int part) const;

 private:
  void CopyRow(const std::byte* from, std::byte* to, int64_t begin, int64_t end) const;
  void RunSquares(const std::byte* from, std::byte* to, size_t other, int parts, int part) const;
  size_t TransposedDim() const;
};

}  // namespace ridge::cpu
