#include "ridge/partition/state_bytes.h"

#include "ridge/core/rounding.h"

namespace ridge {
namespace {

constexpr int64_t kPlacement = 64;

int64_t* KindOf(StateBytes& bytes, const ValueInfo& info) {
  if (info.kind == ValueKind::kParameter) return &bytes.parameters;
  if (info.kind != ValueKind::kState) return nullptr;
  if (info.role == ValueRole::kOptimizer) return &bytes.optimizer;
  return info.role == ValueRole::kGradient ? &bytes.gradients : &bytes.other;
}

bool IsUpdated(const Graph& graph, ValueId id) {
  for (const GraphUpdate& update : graph.updates())
    if (update.variable == id) return true;
  return false;
}

// The gradients that optimizers read as results: not those that a state sums up.
std::vector<ValueId> GradientsOf(const Graph& graph) {
  std::vector<ValueId> gradients;
  for (const Node& node : graph.nodes()) {
    if (node.op->cost_class == CostClass::kOptimizer) gradients.push_back(node.inputs[1]);
  }
  return gradients;
}

}  // namespace

StateBytes StateBytesOf(const Graph& graph, const Partitioned& parts) {
  StateBytes bytes;
  for (size_t v = 0; v < graph.values().size(); ++v) {
    const ValueInfo& info = graph.values()[v];
    int64_t* kind = KindOf(bytes, info);
    if (kind == nullptr) continue;
    const TensorType local{info.type.dtype, LocalDims(info.type.dims, parts.splits[v], parts.mesh)};
    *kind += RoundUp(local.bytes(), kPlacement);
  }
  for (ValueId id : GradientsOf(parts.local))
    bytes.gradients += RoundUp(parts.local.type(id).bytes(), kPlacement);
  return bytes;
}

StateBytes ZeroStateBytes(const Graph& graph, int stage, int64_t ranks) {
  StateBytes bytes;
  const auto share = [&](const TensorType& type, bool cut) {
    const int64_t elements = cut ? CeilDiv(type.elements(), ranks) : type.elements();
    return RoundUp(elements * BytesPerElement(type.dtype), kPlacement);
  };
  for (size_t v = 0; v < graph.values().size(); ++v) {
    const ValueInfo& info = graph.values()[v];
    int64_t* kind = KindOf(bytes, info);
    if (kind == nullptr) continue;
    const bool cut =
        IsUpdated(graph, static_cast<ValueId>(v)) &&
        ((kind == &bytes.parameters && stage >= 3) || (kind == &bytes.optimizer && stage >= 1) ||
         (kind == &bytes.gradients && stage >= 2));
    *kind += share(info.type, cut);
  }
  for (ValueId id : GradientsOf(graph)) bytes.gradients += share(graph.type(id), stage >= 1);
  return bytes;
}

}  // namespace ridge
