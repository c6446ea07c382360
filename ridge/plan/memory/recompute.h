// Which values of a training step are computed again rather than kept (docs/design/0013).
#pragma once
#include "ridge/graph/passes/recompute.h"

namespace ridge {

// At the schedule's peak: those that later nodes read once more, that cost one sweep over memory to
// make again, and whose making needs fewer bytes to be kept than they have.  Empty when there is
// none, and for graphs without gradients.  Pure: same graph, same set.
//
// Sizes are those of row-major tensors and nothing is fused yet, so the peak is near the plan's and
// not the same.
RecomputeSet FindRecomputable(const Graph& graph);

}  // namespace ridge
