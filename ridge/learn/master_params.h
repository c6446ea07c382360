// WithMasterParams: parameters of f16 and bf16 are kept in f32.
//
// An update is often smaller than half a step of such a number and would be lost, and the squares
// that Adam keeps underflow.  So the parameter becomes its master_param, f32 under the same name,
// and a cast behind it gives the graph what it computes with.
#pragma once
#include "ridge/graph/graph.h"

namespace ridge {

// Trainable parameters of f16 or bf16, by name.
std::vector<std::string> HalfParameters(const Graph& graph);

// The graph itself where it has none.
Result<Graph> WithMasterParams(Graph graph);

}  // namespace ridge
