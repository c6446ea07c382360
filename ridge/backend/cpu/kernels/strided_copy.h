// StridedCopy: moves an array between two strided views, elements of 1, 2, 4 or 8 bytes.
//
// Neighbouring dimensions that are contiguous on both sides are merged; what is contiguous in both
// is copied by memcpy; where the innermost dimension of the one is not that of the other (a
// transpose), small squares are turned in registers, so each cache line is used whole.
#pragma once
#include "ridge/core/shape.h"

namespace ridge::cpu {

struct StridedCopy {
  Dims dims;
  Dims from_strides, to_strides;  // in elements; may be 0 or negative on the `from` side
  int64_t from_base = 0, to_base = 0;
  int64_t element_bytes = 4;

  // REQUIRES: no extent is 0.  Merges dimensions and counts in bytes from now on; call once before
  // Run.
  void Simplify();
  // The share of one of `parts`.
  void Run(const void* from, void* to, int parts, int part) const;

 private:
  void MergeDims();
  void WidenElements();
  size_t TransposedDim() const;
  void RunRows(const std::byte* from, std::byte* to, int parts, int part) const;
  void RunSquares(const std::byte* from, std::byte* to, size_t other, int parts, int part) const;
};

inline constexpr int64_t kMostSquareBytes = 16 * 1024;

// to[j][i] = from[i][j] for i < rows, j < columns, vectorized; strides in bytes, elements side by
// side along j in `from` and along i in `to`.
void TransposeSquare(int64_t element_bytes, const std::byte* from, int64_t from_stride,
                     std::byte* to, int64_t to_stride, int64_t rows, int64_t columns);

}  // namespace ridge::cpu
