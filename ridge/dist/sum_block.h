// SumBlock: values side by side that are added to others of the same block as one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ridge/core/dtype.h"
#include "ridge/core/status.h"

namespace ridge {

struct SumBlock {
  struct Values {
    int64_t offset_bytes = 0;  // a multiple of kChunkLine (core/slice_tree.h)
    int64_t elements = 0;
    DType dtype = DType::kF32;
  };
  std::vector<Values> values;  // by offset; what lies between is not touched
  int64_t bytes = 0;           // a multiple of kChunkLine
};

// Fails with kUnsupported unless all values are f64, f32, i64 or i32.
Status CheckSums(const SumBlock& block);

// to = a + b for the bytes [begin, end) of the block, whose starts are given.  `to` may be `a` or
// `b`.  The bits depend neither on begin and end nor on who calls it for which part.
// REQUIRES: CheckSums; begin and end are multiples of kChunkLine.
void AddSums(const SumBlock& block, int64_t begin, int64_t end, const std::byte* a,
             const std::byte* b, std::byte* to);

}  // namespace ridge
