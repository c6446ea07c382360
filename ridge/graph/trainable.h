// ChooseTrainable: which parameters are trained, by patterns of their names.
//
// A parameter that is not trained has no gradient and no optimizer state.  Running statistics are
// no parameters: those of a frozen batch norm go on moving, as in PyTorch.
#pragma once
#include <string>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/graph/graph.h"

namespace ridge {

struct TrainablePatterns {
  std::vector<std::string> freeze;     // these are not trained
  std::vector<std::string> trainable;  // these are, whatever `freeze` and the graph say
};

// Fails with kInvalidArgument when a pattern matches no parameter, or none is left to train.
Status ChooseTrainable(const TrainablePatterns& patterns, Graph& graph);

// Of all parameters, in the graph's order.
std::vector<std::string> ParameterNames(const Graph& graph);

// The parameters that are not trained.
std::vector<std::string> FrozenParameters(const Graph& graph);

}  // namespace ridge
