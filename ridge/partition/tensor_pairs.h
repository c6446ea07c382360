// Pairs of weights that tensor parallelism cuts, found from the graph.
#pragma once
#include <map>
#include <vector>

#include "ridge/graph/graph.h"
#include "ridge/partition/layouts.h"

namespace ridge {

struct TensorPairs {
  std::vector<TensorPair> pairs;     // in node order
  std::map<ValueId, Split> weights;  // how their parameters are cut by `axis`
};

// A pair needs its features, and with attention its heads, to be a multiple of the axis.
TensorPairs FindTensorPairs(const Graph& graph, const Mesh& mesh, int axis);

}  // namespace ridge
