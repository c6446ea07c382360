// SumBlock: values side by side that are added to others of the same block as one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ridge/core/dtype.h"
#include "ridge/core/status.h"
#include "ridge/core/wire_block.h"

namespace ridge {

struct SumBlock {
  struct Values {
    int64_t offset_bytes = 0;  // a multiple of kChunkLine (core/slice_tree.h)
    int64_t elements = 0;
    DType dtype = DType::kF32;
    // f32 that ranks send as bf16.  Addends and sums are rounded to it, also where nothing is sent,
    // so the bits do not depend on which of them are.
    bool narrow = false;
  };
  std::vector<Values> values;  // by offset; what lies between is not touched
  int64_t bytes = 0;           // a multiple of kChunkLine
  int64_t segment_bytes = 0;   // WireBlock's

  // A narrow range goes on to the next values.
  WireBlock wire() const;
};

// Fails with kUnsupported unless all values are f64, f32, i64 or i32.
Status CheckSums(const SumBlock& block);

// to = a + b for the bytes [begin, end) of the block, whose starts are given.  `to` may be `a` or
// `b`.  The bits depend neither on begin and end nor on who calls it for which part.
// REQUIRES: CheckSums; begin and end are multiples of kChunkLine.
void AddSums(const SumBlock& block, int64_t begin, int64_t end, const std::byte* a,
             const std::byte* b, std::byte* to);

// The bytes [begin, end) of the block as they are sent, and back.  The starts of the block and of
// what is sent (WireBlock::WireOffset) are given.  REQUIRES: begin and end as for AddSums.
void PackSums(const WireBlock& wire, int64_t begin, int64_t end, const std::byte* block,
              std::byte* sent);
void UnpackSums(const WireBlock& wire, int64_t begin, int64_t end, const std::byte* sent,
                std::byte* block);

}  // namespace ridge
