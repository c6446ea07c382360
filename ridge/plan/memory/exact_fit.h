// PlaceWithin: offsets of buffers in a region of a given size, by exhaustive search.
//
//   FitResult fit = PlaceWithin(buffers, LiveBound(buffers), /*most_nodes=*/1'000'000);
//   if (fit.end == FitEnd::kPlaced) Use(fit.placement);
//
// The search is exponential at worst; `most_nodes` bounds it by counted work, so the same buffers
// give the same answer on every machine.  Pure.
#pragma once
#include <vector>

#include "ridge/plan/memory/offsets.h"

namespace ridge {

enum class FitEnd {
  kPlaced,      // the placement is within the limit
  kImpossible,  // no placement is within the limit
  kGaveUp,      // the nodes were used up
};

struct FitResult {
  FitEnd end = FitEnd::kGaveUp;
  Placement placement;  // of kPlaced
  int64_t nodes = 0;    // visited
};

FitResult PlaceWithin(const std::vector<Buffer>& buffers, int64_t limit_bytes, int64_t most_nodes);

}  // namespace ridge
