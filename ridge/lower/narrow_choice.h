// Which results of a graph are stored in 16 bits: the decision of narrow_storage.h.
#pragma once
#include <vector>

#include "ridge/graph/graph.h"
#include "ridge/lower/kernel_query.h"

namespace ridge {

struct NarrowChoice {
  std::vector<bool> values;  // by value: it is stored in 16 bits
  // By node and input: the node reads the 16-bit value directly; other readers need a cast.
  std::vector<std::vector<bool>> reads;
};

NarrowChoice ChooseNarrow(const Graph& graph, DType narrow, KernelQuery& kernels);

// Whether this node can absorb casts of all its tensors as steps.
bool TakesCasts(const Node& node);

}  // namespace ridge
