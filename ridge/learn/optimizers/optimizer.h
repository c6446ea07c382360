// Optimizers: each appends the update of one parameter to a graph as nodes.
//
// One file per optimizer; optimizer.cc lists them.  State is named PARAM.momentum, PARAM.m,
// PARAM.v.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/graph/builder.h"

namespace ridge {

struct OptimizerOptions {
  std::string name = "adam";           // sgd, adam, adamw
  double momentum = 0;                 // sgd
  bool nesterov = false;               // sgd
  double beta1 = 0.9;                  // adam, adamw
  double beta2 = 0.999;                // adam, adamw
  double epsilon = 1e-8;               // adam, adamw
  std::optional<double> weight_decay;  // PyTorch's default when not given: 0, adamw 0.01
};

// The scalars that every update reads.
struct UpdateInputs {
  Value lr;    // f32[] or f64[]
  Value step;  // i64[]: 1 at the first update
};

struct Optimizer {
  std::string name;
  std::string doc;
  // Adds state, the update node, and the updates of parameter and state.
  void (*append)(GraphBuilder& b, Value param, Value grad, const UpdateInputs& inputs,
                 const OptimizerOptions& options) = nullptr;
};

Optimizer SgdOptimizer();
Optimizer AdamOptimizer();
Optimizer AdamWOptimizer();

const std::vector<Optimizer>& AllOptimizers();
// Fails with kInvalidArgument: an unknown name, or an option out of range or of another optimizer.
Result<const Optimizer*> FindOptimizer(const OptimizerOptions& options);

// A state of param's type, named PARAM.suffix, initially 0.
Value OptimizerState(GraphBuilder& b, Value param, const std::string& suffix);

}  // namespace ridge
