// A graph in the form that partitioning works on: with the same meaning, and the same names of
// leaves, outputs and updated values.
//
//   matmul(a, b, bias)          matmul(a, b) + bias: what is summed over devices is complete first
//   batch_norm and its gradient means, products and sums: the batch's moments are then sums over
//                               devices like any other, so batch norm is synchronized
//   a + b + .. of products      products first, so that sums over devices stay open until the last
#pragma once
#include "ridge/graph/graph.h"

namespace ridge {

Result<Graph> NormalForm(const Graph& graph);

}  // namespace ridge
