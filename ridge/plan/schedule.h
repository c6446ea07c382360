// The order in which a graph's nodes run.
#pragma once
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

// The graph's own order (forward, backward, update), but every optimizer node runs as soon as its
// gradient is there and nobody else reads its variables any more, so that the gradient's bytes are
// free again.  Reductions to little (the argmax of logits, the gradient of a bias) also run as soon
// as they can, so that others are the last to read what they reduce.  Linear in nodes and edges.
std::vector<NodeId> ScheduleNodes(const Graph& graph);

}  // namespace ridge
