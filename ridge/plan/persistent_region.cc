#include "ridge/plan/persistent_region.h"

#include <fmt/format.h>

#include "ridge/core/rounding.h"
#include "ridge/graph/batch_axis.h"

namespace ridge {
namespace {

// All of an input has the bytes of its slices where all of them are here.
std::string PlainName(const std::string& name, const StepPlan& step) {
  const bool shared = step.tree && step.tree->share.ranks > 1;
  return IsWholeInput(name) && !shared ? name.substr(sizeof(kWholePrefix) - 1) : name;
}

TensorType Repeated(TensorType type, int64_t times) {
  if (!type.dims.empty()) type.dims[0] *= times;
  return type;
}

}  // namespace

bool IsVariable(const ValueInfo& info) {
  return info.kind == ValueKind::kParameter || info.kind == ValueKind::kState;
}

bool IsOptimizer(const Node& node) { return node.op->cost_class == CostClass::kOptimizer; }

Purpose PurposeOf(const ValueInfo& info) {
  if (info.kind == ValueKind::kInput) return Purpose::kInputs;
  if (info.role == ValueRole::kGradient) return Purpose::kGradients;
  if (info.role == ValueRole::kOptimizer) return Purpose::kOptimizer;
  return info.kind == ValueKind::kResult ? Purpose::kActivations : Purpose::kParameters;
}

Result<int> PersistentRegion::IndexOf(const ValueInfo& info, const StepPlan& step, bool sliced,
                                      int slots) {
  const bool constant = info.kind == ValueKind::kConstant;
  const TensorType type = sliced ? Repeated(info.type, step.slices) : info.type;
  const std::string name = constant ? step.name + ":" + info.name : PlainName(info.name, step);
  if (const auto known = by_name.find(name); known != by_name.end()) {
    const PersistentValue& value = values[static_cast<size_t>(known->second)];
    if (value.type == type && value.kind == info.kind) return known->second;
    if (value.slices > 1 && value.type == Repeated(info.type, value.slices)) return known->second;
    return Status(ErrorCode::kInvalidModel,
                  fmt::format("{}: '{}' is {} here and {} in another step of the program",
                              step.name, name, TypeToString(type), TypeToString(value.type)));
  }
  const int index = static_cast<int>(values.size());
  by_name[name] = index;
  for (int slot = 0; slot < (info.kind == ValueKind::kInput ? slots : 1); ++slot) {
    PersistentValue value;
    value.name = name;
    value.type = type;
    value.purpose = PurposeOf(info);
    value.kind = info.kind;
    value.role = info.role;
    value.size_bytes = type.bytes();
    value.slot = slot;
    if (type != info.type) value.slices = step.slices;
    if (const auto several = copies.find(name); several != copies.end()) {
      value.of_micro_batch = true;
      value.purpose = Purpose::kActivations;
      value.copies = several->second;
      value.size_bytes = value.copies * RoundUp(type.bytes(), alignment_bytes);
    }
    value.init = constant ? Init::FromTensor(info.constant) : info.init;
    values.push_back(std::move(value));
  }
  return index;
}

LayoutId PersistentRegion::LayoutOf(const std::string& variable) const {
  const auto found = layouts.find(variable);
  return found == layouts.end() ? kRowMajor : found->second;
}

std::map<std::string, std::optional<LayoutId>> OptimizedVariables(
    const std::vector<NamedGraph>& graphs) {
  std::map<std::string, std::optional<LayoutId>> names;
  for (const NamedGraph& named : graphs) {
    const Graph& graph = named.graph;
    for (const GraphUpdate& update : graph.updates()) {
      const Node* producer = graph.producer(update.value);
      if (producer != nullptr && IsOptimizer(*producer))
        names.emplace(graph.value(update.variable).name, std::nullopt);
    }
  }
  return names;
}

}  // namespace ridge
