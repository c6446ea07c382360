// The device-independent passes: each maps a graph to one that means the same.
//
// They take the graph over, and give it back as it is when they find nothing to do; pass a copy to
// keep it.  They keep the names of inputs, parameters, states and outputs, are deterministic, and
// take time linear or n log n in the nodes.  Random operators read their draw as an input, so every
// operator is a pure function and may be merged, dropped and evaluated ahead. The exactness each
// claims is tested: "bitwise" on the reference backend for every dtype.
#pragma once
#include "ridge/graph/graph.h"

namespace ridge {

// Nodes whose inputs are all constants become constants.  # bitwise
Result<Graph> FoldConstants(Graph graph);

// Nodes that compute the same, and constants that hold the same, become one.  # bitwise
Result<Graph> MergeCommon(Graph graph);

// layer_norm, rms_norm, gelu and silu that are written as primitive nodes become the operators, and
// what is dead then is dropped.  Values that somebody else reads keep their nodes.  Does most
// before differentiation.  # within 1e-5
Result<Graph> RecognizePatterns(Graph graph);

// slice(f(x)) -> f(slice(x)) where nobody reads the other rows of f(x), for operators that make
// each row on its own.  Does most before differentiation.  # bitwise
Result<Graph> PushSlicesUp(Graph graph);

// matmul(softmax(matmul(q, k^T) * scale + mask), v), in the ways exporters write it, becomes
// attention(q, k, v, mask).  Does most before differentiation.  # within 1e-5; a query that sees no
// key gives 0 where the nodes gave NaN
Result<Graph> RecognizeAttention(const Graph& graph);

// Transposes and slices of heads around attention go; it reads [B,T,H,D], or q, k and v in one
// value, as projections write them.  Does most before differentiation.  # bitwise
Result<Graph> LayOutAttention(Graph graph);

// x * 1 -> x, transpose(transpose(x)) -> x, add(matmul(a, b), bias) -> matmul(a, b, bias), ...
// The rules are in algebra_rules.cc.  # within 1e-5
Result<Graph> SimplifyAlgebra(Graph graph);

// Nodes and constants that no output and no update needs are dropped; inputs and variables stay.
// # bitwise
Result<Graph> RemoveDead(Graph graph);

// A thin conv, relu and max_pool become one conv_pool; pointwise nodes go into the epilogue of the
// matmul or conv before them, or together into one `fused` node.  # bitwise
Result<Graph> Fuse(Graph graph);

}  // namespace ridge
