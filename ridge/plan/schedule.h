// The order in which a graph's nodes run.
#pragma once
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

// The graph's own order (forward, backward, update), but every optimizer node, and what adds a
// gradient to its sum over slices or micro-batches, runs as soon as the gradient is computed and no
// other node still has to read its variables: this frees the gradient's bytes, and what it is
// computed from.  Strong reductions (the argmax of logits, the gradient of a bias) also run as soon
// as possible, so that they do not keep their inputs live.  Products that a gather of all slices
// does not need, such as weight gradients, run behind it and before what reads it: a rank computes
// them while others are late.  Linear in nodes and edges.
std::vector<NodeId> ScheduleNodes(const Graph& graph);

}  // namespace ridge
