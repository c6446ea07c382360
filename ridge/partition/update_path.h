// Where the updates of variables are computed.
//
// The pointwise nodes between gradients and updates (an optimizer's, or its parts) work element by
// element, so they run where the variable is stored, each device on its part.  The gradients that
// they read are summed to where they need them.
#pragma once
#include <vector>

#include "ridge/graph/graph.h"
#include "ridge/partition/split.h"

namespace ridge {

struct UpdatePath {
  std::vector<bool> has;                    // by node: it is one of these
  std::vector<std::vector<Cut>> nodes;      // by node: the cuts of the variables that it updates
  std::vector<std::vector<Cut>> gradients;  // by value that such nodes read: the same
};

// `stored`: by value, of variables.
UpdatePath FindUpdatePath(const Graph& graph, const std::vector<Split>& stored);

}  // namespace ridge
