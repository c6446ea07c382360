// The text of a stable sort of indices, for kernels that gather by row what a scatter would add.
//
// Least significant digit first, 6 bits or fewer a pass: each block counts its digits, one block
// turns all counts into places, each block moves its items there; a single block does all at once.
// No atomics: the order is that of the indices, on every GPU.
#pragma once
#include <cstdint>
#include <string>

#include "ridge/backend/cuda/kernel_text.h"
#include "ridge/core/dtype.h"

namespace ridge::cuda {

// Rows [0, extent) that `count` indices in [-extent, extent) name; others name none.
struct RowSort {
  int64_t count = 0;
  int64_t extent = 0;
  DType index_dtype = DType::kI64;
  Argument indices = {};

  // Where in the workspace the results lie, u32 each: rows in ascending order ([count], `extent`
  // for none), the number of the index of each, and the first of each row ([extent + 1]).
  int64_t rows_at = 0, numbers_at = 0, firsts_at = 0;
};

// Whether numbers and rows fit.
bool CanSort(int64_t count, int64_t extent);

// Appends functions and launches to `text`, and to its workspace, and sets the offsets of `sort`.
// The source must begin with kPlaceOfIndexText.  REQUIRES: CanSort(), count > 0.
void AppendSort(RowSort& sort, KernelText& text);

}  // namespace ridge::cuda
