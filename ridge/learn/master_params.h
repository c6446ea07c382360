// WithMasterParams: keeps parameters of f16 and bf16 in f32.
//
// An update is often smaller than half a unit in the last place of such a number and would be lost,
// and Adam's squared gradients underflow.  So the parameter becomes its master_param, f32 under the
// same name, followed by a cast to the type that the graph computes in.
#pragma once
#include "ridge/graph/graph.h"

namespace ridge {

// Trainable parameters of f16 or bf16, by name.
std::vector<std::string> HalfParameters(const Graph& graph);

// The graph itself when it has no such parameter.
Result<Graph> WithMasterParams(Graph graph);

}  // namespace ridge
