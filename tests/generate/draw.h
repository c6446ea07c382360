// DrawGraph: a forward graph with a loss from a seed.
#pragma once
#include "ridge/graph/graph.h"

namespace ridge {

// In f64, with an output `loss` (one number), at least one trainable parameter that reaches it, and
// inputs whose first extent is the batch, often 1.  Small: a few thousand numbers at most.
Graph DrawGraph(uint64_t seed);

}  // namespace ridge
