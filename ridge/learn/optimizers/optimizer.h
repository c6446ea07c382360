// Optimizers: each appends the update of one parameter to a graph as nodes.
//
// One file per optimizer; optimizer.cc lists them.  State is named PARAM.momentum, PARAM.m,
// PARAM.v, and of 8 bits PARAM.m_absmax beside it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/graph/builder.h"
#include "ridge/graph/ops/shared/moments.h"

namespace ridge {

struct OptimizerOptions {
  std::string name = "adam";           // sgd, adam, adamw
  double momentum = 0;                 // sgd
  bool nesterov = false;               // sgd
  double beta1 = 0.9;                  // adam, adamw
  double beta2 = 0.999;                // adam, adamw
  double epsilon = 1e-8;               // adam, adamw
  std::optional<double> weight_decay;  // PyTorch's default when not given: 0, adamw 0.01
  std::string state = "f32";           // of the moments: f32, bf16, 8bit (moments.h)
  int64_t least_coded = 4096;          // elements of the smallest parameter that 8bit is for
};

// What the update of a parameter reads beside it and its gradient.
struct UpdateInputs {
  Value lr;          // f32[] or f64[]
  Value step;        // i64[]: 1 at the first update
  Value rounding;    // i64[2]: seed, step; invalid where no moment is rounded at random
  Value apply;       // bool[]: whether the update happens; invalid: always
  Value grad_scale;  // f32[]: what gradients are multiplied by; invalid: 1
  MomentForm form = MomentForm::kWhole;  // of the parameter's moments
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

// A state named PARAM.suffix, initially 0, of param's type or another.
Value OptimizerState(GraphBuilder& b, Value param, const std::string& suffix);
Value OptimizerState(GraphBuilder& b, Value param, const std::string& suffix,
                     const TensorType& type);

}  // namespace ridge
