// sgd: torch.optim.SGD.
//   g = grad + weight_decay * param
//   buffer = momentum * buffer + g      (starts with zeros, which is PyTorch's start with g)
//   param = param - lr * buffer         (nesterov: lr * (g + momentum * buffer))
#include "ridge/graph/ops/shared/optimizer.h"
#include "ridge/learn/optimizers/moments.h"
#include "ridge/learn/optimizers/optimizer.h"

namespace ridge {
namespace {

void AppendSgd(GraphBuilder& b, Value param, Value grad, const UpdateInputs& inputs,
               const OptimizerOptions& options) {
  if (!b.ok()) return;
  std::vector<Value> arguments = {param, grad, inputs.lr};
  const std::string name = b.graph().value(param.id).name + ".updated";
  AttrMap attrs = {{"momentum", options.momentum},
                   {"nesterov", options.nesterov},
                   {"weight_decay", options.weight_decay.value_or(0)}};
  std::vector<Moment> buffers;
  if (options.momentum != 0) {
    buffers.push_back(AddMoment(b, param, "momentum", inputs.form));
    arguments.push_back(buffers[0].state);
    AddForm(inputs, name, buffers, arguments, attrs);
  }
  AddApply(inputs, kSgdApply, arguments);
  const std::vector<Value> updated = OpOutputs("sgd_update", arguments, attrs, name);
  if (!b.ok()) return;
  b.Update(param, updated[0]);
  UpdateMoments(b, buffers, updated);
}

}  // namespace

Optimizer SgdOptimizer() {
  return {"sgd", "gradient descent, with --momentum as torch.optim.SGD", AppendSgd};
}

}  // namespace ridge
