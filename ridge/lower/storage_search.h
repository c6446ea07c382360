// Chooses the results of a graph that reduced_storage.h stores in 16 bits.
#pragma once
#include <vector>

#include "ridge/graph/graph.h"
#include "ridge/lower/kernel_query.h"

namespace ridge {

struct StorageChoice {
  std::vector<bool> values;  // by value: it is stored in 16 bits
  // By node and input: the node reads the 16-bit value directly; other readers need a cast.
  std::vector<std::vector<bool>> reads;
};

StorageChoice ChooseReducedStorage(const Graph& graph, DType reduced, KernelQuery& kernels);

// Whether this node can absorb casts of all its tensors as steps of its expression.
bool TakesCasts(const Node& node);

}  // namespace ridge
