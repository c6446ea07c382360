// adam, adamw: torch.optim.Adam and AdamW.
//   adam:  g = grad + weight_decay * param
//   adamw: g = grad, param = param * (1 - lr * weight_decay)
//   m = beta1 * m + (1 - beta1) * g,  v = beta2 * v + (1 - beta2) * g^2
//   param = param - lr / (1 - beta1^step) * m / (sqrt(v / (1 - beta2^step)) + epsilon)
#include "ridge/graph/ops/shared/optimizer.h"
#include "ridge/learn/optimizers/moments.h"
#include "ridge/learn/optimizers/optimizer.h"

namespace ridge {
namespace {

void Append(GraphBuilder& b, Value param, Value grad, const UpdateInputs& inputs,
            const OptimizerOptions& options, bool decoupled, double weight_decay) {
  const Moment m = AddMoment(b, param, "m", inputs.form);
  const Moment v = AddMoment(b, param, "v", inputs.form);
  if (!b.ok()) return;
  std::vector<Value> arguments = {param, grad, m.state, v.state, inputs.lr, inputs.step};
  const std::string name = b.graph().value(param.id).name + ".updated";
  AttrMap attrs = {{"beta1", options.beta1},
                   {"beta2", options.beta2},
                   {"epsilon", options.epsilon},
                   {"weight_decay", weight_decay},
                   {"decoupled", decoupled}};
  AddForm(inputs, name, {m, v}, arguments, attrs);
  AddApply(inputs, kAdamApply, arguments);
  const std::vector<Value> updated = OpOutputs("adam_update", arguments, attrs, name);
  if (!b.ok()) return;
  b.Update(param, updated[0]);
  UpdateMoments(b, {m, v}, updated);
}

void AppendAdam(GraphBuilder& b, Value param, Value grad, const UpdateInputs& inputs,
                const OptimizerOptions& options) {
  Append(b, param, grad, inputs, options, /*decoupled=*/false, options.weight_decay.value_or(0));
}

void AppendAdamW(GraphBuilder& b, Value param, Value grad, const UpdateInputs& inputs,
                 const OptimizerOptions& options) {
  Append(b, param, grad, inputs, options, /*decoupled=*/true, options.weight_decay.value_or(0.01));
}

}  // namespace

Optimizer AdamOptimizer() { return {"adam", "Adam as torch.optim.Adam", AppendAdam}; }

Optimizer AdamWOptimizer() {
  return {"adamw", "Adam with decoupled weight decay (0.01 by default) as torch.optim.AdamW",
          AppendAdamW};
}

}  // namespace ridge
