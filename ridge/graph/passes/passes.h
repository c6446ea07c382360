// The passes that think of no kernel: each maps a graph to an equivalent one.
//
// They consume the graph, and return it unchanged when they find nothing to do; pass a copy to keep
// the original.  They keep the names of inputs, parameters, states and outputs, are deterministic,
// and take time linear or n log n in the nodes.  Random operators read their draw as an input, so
// every operator is a pure function and may be merged, dropped and evaluated ahead.  The exactness
// that each claims is tested: "bitwise" on the reference backend for every dtype.
#pragma once
#include "ridge/graph/graph.h"

namespace ridge {

// Nodes whose inputs are all constants become constants.  # bitwise
Result<Graph> FoldConstants(Graph graph);

// Equal nodes become one node, and equal constants one constant.  # bitwise
Result<Graph> MergeCommon(Graph graph);

// layer_norm, rms_norm, gelu and silu that are written as primitive nodes become the operators, and
// dead nodes are dropped.  Values with other readers keep their nodes.  Most useful before
// differentiation.  # within 1e-5
Result<Graph> RecognizePatterns(Graph graph);

// slice(f(x)) -> f(slice(x)) if the other rows of f(x) have no readers, for operators that compute
// each row independently.  Most useful before differentiation.  # bitwise
Result<Graph> PushDownSlices(Graph graph);

// matmul(softmax(matmul(q, k^T) * scale + mask), v), in the ways exporters write it, becomes
// attention(q, k, v, mask).  Most useful before differentiation.  # within 1e-5; a fully masked
// query gives 0 where the nodes gave NaN
Result<Graph> RecognizeAttention(const Graph& graph);

// x * 1 -> x, transpose(transpose(x)) -> x, add(matmul(a, b), bias) -> matmul(a, b, bias), ...
// The rules are in algebra_rules.cc.  # within 1e-5
Result<Graph> SimplifyAlgebra(Graph graph);

// Nodes and constants that no output and no update needs are dropped; inputs and variables stay.
// # bitwise
Result<Graph> RemoveDead(Graph graph);

// The same without inputs and variables that nothing reads; leaves are in the order of their first
// use.  No pass of the pipeline: it changes what a caller has to give.  # bitwise
Result<Graph> KeepNeeded(const Graph& graph);

}  // namespace ridge
