// Offsets: places buffers with live ranges in one region so that no two that live at the same time
// share a byte.
//
// Finding the smallest region is NP-hard (dynamic storage allocation).  Few buffers: several
// first-fit orders are tried, and the buffers that touch the top are moved to the front and placed
// again, until the region equals its lower bound or the rounds are used up.  Many buffers: best fit
// first (best_fit.h), in nearly linear time, then first fit while its work allows.  What is still
// more than a thousandth above the bound is searched exhaustively (exact_fit.h) for a bounded
// number of nodes.  Pure: same buffers, same offsets.
#pragma once
#include <cstdint>
#include <vector>

namespace ridge {

struct Buffer {
  int64_t size_bytes = 0;  // rounded up to the alignment by the caller
  int first = 0;           // first and last step of life, inclusive
  int last = 0;
};

struct Placement {
  std::vector<int64_t> offsets;  // by buffer
  int64_t peak_bytes = 0;        // size of the region
};

Placement PlaceBuffers(const std::vector<Buffer>& buffers);

// For each buffer the others with bytes that live at a common step.
std::vector<std::vector<int>> LiveTogether(const std::vector<Buffer>& buffers);

// Largest sum of sizes live at one step: no placement can do better.  `peak_step` may be null.
int64_t LiveBound(const std::vector<Buffer>& buffers, int* peak_step = nullptr);

}  // namespace ridge
