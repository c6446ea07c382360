// sgd: torch.optim.SGD.
//   g = grad + weight_decay * param
//   buffer = momentum * buffer + g      (starts with zeros, which is PyTorch's start with g)
//   param = param - lr * buffer         (nesterov: lr * (g + momentum * buffer))
#include "ridge/learn/optimizers/optimizer.h"

namespace ridge {
namespace {

void AppendSgd(GraphBuilder& b, Value param, Value grad, const UpdateInputs& inputs,
               const OptimizerOptions& options) {
  std::vector<Value> arguments = {param, grad, inputs.lr};
  Value buffer;
  if (options.momentum != 0) {
    buffer = OptimizerState(b, param, "momentum");
    arguments.push_back(buffer);
  }
  if (!b.ok()) return;
  const std::vector<Value> updated = OpOutputs("sgd_update", arguments,
                                               {{"momentum", options.momentum},
                                                {"nesterov", options.nesterov},
                                                {"weight_decay", options.weight_decay.value_or(0)}},
                                               b.graph().value(param.id).name + ".updated");
  if (!b.ok()) return;
  b.Update(param, updated[0]);
  if (buffer.valid()) b.Update(buffer, updated[1]);
}

}  // namespace

Optimizer SgdOptimizer() {
  return {"sgd", "gradient descent, with --momentum as torch.optim.SGD", AppendSgd};
}

}  // namespace ridge
