// PlanText: the command `plan` of a text case.
//
//   plan                          the graph as one step, on the reference backend
//   plan train [slices=N] [accumulate=N] [clip=X] [loss_scale] [streams=N] [ranks=N] [rank=N]
//              [overlap]
//                              its training steps with sgd, after all passes
//
// The text has the bytes of each region, then one line a node in the order in which they run:
//
//   3 relu  y -> 64..80, read to 5     scratch bytes, and the last node that needs them
//   4 add   total -> s                 the variable s; "in x" for the bytes of x
//   5 mul   z -> first in s, ..        in the first slice the bytes of s
//   [last]                             runs in the last slice only; [later]: not in the first
//   [once]                             of a loop in step: runs with the last slice only
#pragma once
#include <string>

#include "ridge/graph/graph.h"

namespace ridge {

// The plan as text, or the error.
std::string PlanText(const Graph& graph, const std::string& options);

}  // namespace ridge
