// adam_update_group, sgd_update_group, momentum_update_group: several updates as one node, for
// devices where a launch takes longer than a small update.
//
// The numbers are those of the single updates, one by one.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/update_group.h"

namespace ridge {
namespace {

constexpr size_t kAdam = 0, kSgd = 1, kMomentum = 2;  // in AllUpdateGroups()

Status CheckArrays(const UpdateGroup& group, const OpCall& call) {
  const size_t first = group.shared.size();
  const size_t arrays = call.inputs.size() - first, each = group.own.size();
  if (arrays % each != 0 || arrays / each > kMostUpdates) {
    return CallError(call, fmt::format("has {} arrays; an update takes {}, and a group has {} "
                                       "updates at most",
                                       arrays, each, kMostUpdates));
  }
  for (size_t i = first; i < call.inputs.size(); ++i) {
    if (call.inputs[i].dtype == call.inputs[first].dtype) continue;
    return CallError(
        call, fmt::format("input {} is {}, input {} is {}; a group has one type", i,
                          TypeToString(call.inputs[i]), first, TypeToString(call.inputs[first])));
  }
  return Status();
}

template <size_t kGroup>
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const UpdateGroup& group = AllUpdateGroups()[kGroup];
  RIDGE_RETURN_IF_ERROR(CheckArrays(group, call));
  std::vector<TensorType> outputs;
  for (size_t at = 0; at < group.CountOf(call); ++at) {
    OpCall update = group.UpdateOf(call, at);
    RIDGE_ASSIGN_OR_RETURN(const std::vector<TensorType> own,
                           FindOp(group.update)->infer_types(update));
    outputs.insert(outputs.end(), own.begin(), own.end());
  }
  return outputs;
}

template <size_t kGroup>
Cost EstimateCost(const OpCall& call) {
  const UpdateGroup& group = AllUpdateGroups()[kGroup];
  int64_t flops = 0;
  for (size_t at = 0; at < group.CountOf(call); ++at)
    flops += CallCost(*FindOp(group.update), group.UpdateOf(call, at)).flops;
  return StreamingCost(call, flops);
}

template <size_t kGroup>
void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const UpdateGroup& group = AllUpdateGroups()[kGroup];
  for (size_t at = 0; at < group.CountOf(call); ++at) {
    const OpCall update = group.UpdateOf(call, at);
    std::vector<const double*> inputs(update.inputs.size(), nullptr);
    for (size_t i = 0; i < group.shared.size(); ++i) inputs[group.shared[i]] = in[i];
    for (size_t i = 0; i < group.own.size(); ++i) inputs[group.own[i]] = in[group.OwnInput(at, i)];
    FindOp(group.update)
        ->reference(update, inputs, out.subspan(group.Output(at, 0), group.outputs));
  }
}

// As the operator of one update allows it, for as many as a group may have.
std::vector<std::pair<int, int>> InPlace(const UpdateGroup& group) {
  std::vector<std::pair<int, int>> pairs;
  for (size_t at = 0; at < kMostUpdates; ++at) {
    pairs.emplace_back(group.Output(at, 0), group.OwnInput(at, 0));
    for (size_t o = 1; o < group.outputs; ++o)
      pairs.emplace_back(group.Output(at, o), group.OwnInput(at, o + 1));
  }
  return pairs;
}

template <size_t kGroup>
OpDef GroupDef(std::string doc, std::vector<std::string> inputs, std::vector<std::string> outputs,
               AttrMap attrs) {
  return {
      .name = AllUpdateGroups()[kGroup].name,
      .doc = std::move(doc),
      .input_names = std::move(inputs),
      .output_names = std::move(outputs),
      .attr_defaults = std::move(attrs),
      .cost_class = CostClass::kOptimizer,
      .infer_types = InferTypes<kGroup>,
      .cost = EstimateCost<kGroup>,
      .in_place = InPlace(AllUpdateGroups()[kGroup]),
      .recompute = Recompute::kNever,
      .reference = Reference<kGroup>,
  };
}

}  // namespace

std::vector<OpDef> UpdateGroupOps() {
  const AttrMap sgd = {{"momentum", 0.0}, {"nesterov", 0}, {"weight_decay", 0.0}};
  return {
      GroupDef<kAdam>(
          "Several adam_update of one lr, step, apply and grad_scale: arrays are param, "
          "grad, m, v of each; outputs new_param, new_m, new_v of each.",
          {"lr", "step", "apply?", "grad_scale?", "array..."}, {"new_param", "new_m", "new_v"},
          {{"beta1", 0.9},
           {"beta2", 0.999},
           {"epsilon", 1e-8},
           {"weight_decay", 0.0},
           {"decoupled", 0}}),
      GroupDef<kSgd>(
          "Several sgd_update without momentum, of one lr, apply and grad_scale: arrays are "
          "param, grad of each; outputs new_param of each.",
          {"lr", "apply?", "grad_scale?", "array..."}, {"new_param"}, sgd),
      GroupDef<kMomentum>(
          "Several sgd_update with momentum, of one lr, apply and grad_scale: arrays are "
          "param, grad, momentum_buffer of each; outputs new_param, new_momentum_buffer of "
          "each.",
          {"lr", "apply?", "grad_scale?", "array..."}, {"new_param", "new_momentum_buffer"}, sgd),
  };
}

}  // namespace ridge
