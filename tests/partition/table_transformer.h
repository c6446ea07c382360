// The transformer of the table in docs/design/0041-partition.md: two layers, 13 weights, rms norms
// without gains, momentum.
#pragma once
#include "ridge/graph/graph.h"

namespace ridge {

inline constexpr int64_t kTableLayers = 2;

// Forward, in f64: inputs `x` f64[B,S,M] and `label` i64[B,S], output `loss`.  With positions, x is
// added to a 14th weight [S,M], so that the first layer hands a gradient on too.
Result<Graph> TableTransformer(bool positions = false);

}  // namespace ridge
