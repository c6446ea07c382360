// Which results of a graph are stored in 16 bits: the decision of narrow_storage.h.
#pragma once
#include <vector>

#include "ridge/graph/graph.h"
#include "ridge/graph/kernel_query.h"

namespace ridge {

struct NarrowChoice {
  std::vector<bool> values;  // by value: it becomes narrow
  // By node and input: the node reads a narrow value as it is; others want a cast in front.
  std::vector<std::vector<bool>> reads;
};

NarrowChoice ChooseNarrow(const Graph& graph, DType narrow, KernelQuery& kernels);

// Whether casts of all its tensors can become steps of this node.
bool TakesCasts(const Node& node);

}  // namespace ridge
