#include "ridge/learn/optimizers/moments.h"

#include <algorithm>

#include "ridge/core/random.h"

namespace ridge {
namespace {

TensorType TypeOf(const TensorType& param, MomentForm form) {
  if (form == MomentForm::kWhole) return param;
  return {form == MomentForm::kRounded ? DType::kBF16 : DType::kU8, param.dims};
}

bool Reads(const Node& node, ValueId value) {
  return std::find(node.inputs.begin(), node.inputs.end(), value) != node.inputs.end();
}

}  // namespace

// A parameter of 16 bits is read through a cast.
bool IsTable(const Graph& graph, ValueId param) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
    if (!Reads(node, param)) return false;
    if (node.op->name == "cast") return IsTable(graph, node.outputs[0]);
    return node.op->name == "gather" && node.inputs[0] == param;
  });
}

MomentForm FormOfMoments(const OptimizerOptions& options, const Graph& forward, ValueId param) {
  const TensorType& type = forward.type(param);
  if (options.state == "f32" || type.dtype != DType::kF32) return MomentForm::kWhole;
  if (options.state == "bf16") return MomentForm::kRounded;
  const bool coded = type.elements() >= options.least_coded && !IsTable(forward, param);
  return coded ? MomentForm::kCoded : MomentForm::kWhole;
}

Moment AddMoment(GraphBuilder& b, Value param, const std::string& suffix, MomentForm form) {
  Moment moment;
  if (!b.ok()) return moment;
  const TensorType type = param.type();
  moment.state = OptimizerState(b, param, suffix, TypeOf(type, form));
  if (form == MomentForm::kCoded)
    moment.absmax = OptimizerState(b, param, suffix + "_absmax", AbsmaxType(type));
  return moment;
}

void AddForm(const UpdateInputs& inputs, const std::string& node,
             const std::vector<Moment>& moments, std::vector<Value>& arguments, AttrMap& attrs) {
  if (inputs.form == MomentForm::kRounded) {
    arguments.push_back(inputs.rounding);
    attrs["stream"] = int64_t{StableHash(node)};
  }
  if (inputs.form != MomentForm::kCoded) return;
  arguments.push_back({});
  for (const Moment& moment : moments) arguments.push_back(moment.absmax);
}

void AddApply(const UpdateInputs& inputs, size_t at, std::vector<Value>& arguments) {
  if (!inputs.apply.valid()) return;
  arguments.resize(at);
  arguments.push_back(inputs.apply);
  arguments.push_back(inputs.grad_scale);
}

void UpdateMoments(GraphBuilder& b, const std::vector<Moment>& moments,
                   const std::vector<Value>& updated) {
  size_t next = 1;
  for (const Moment& moment : moments) b.Update(moment.state, updated[next++]);
  for (const Moment& moment : moments) {
    if (moment.absmax.valid()) b.Update(moment.absmax, updated[next++]);
  }
}

}  // namespace ridge
