#include "ridge/learn/graph_copy.h"

#include <algorithm>

namespace ridge {

GraphCopier::GraphCopier(const Graph& from)
    : from_(from), to_(from.name), map_(from.values().size()) {
  to_.graph().Reserve(from.values().size());
}

Value GraphCopier::Mapped(ValueId id) {
  if (id == kNoValue) return {};
  Value& copy = map_[static_cast<size_t>(id)];
  if (!copy.valid() && to_.ok()) copy = CopyLeaf(id);
  return copy;
}

std::vector<Value> GraphCopier::MappedInputs(const Node& node) {
  std::vector<Value> inputs;
  for (ValueId id : node.inputs) inputs.push_back(Mapped(id));
  return inputs;
}

void GraphCopier::Map(ValueId id, Value copy) { map_[static_cast<size_t>(id)] = copy; }

void GraphCopier::CopyNode(const Node& node) {
  const std::vector<Value> inputs = MappedInputs(node);
  if (!to_.ok()) return;
  std::vector<ValueId> ids;
  for (Value v : inputs) ids.push_back(v.id);
  const bool free = std::all_of(node.outputs.begin(), node.outputs.end(), [this](ValueId id) {
    return to_.graph().FindValue(from_.value(id).name) == kNoValue;
  });
  if (free) return CopyUnderItsName(node, std::move(ids));
  std::vector<std::string> names;
  for (ValueId id : node.outputs) names.push_back(to_.graph().UniqueName(from_.value(id).name));
  const Result<NodeId> id =
      to_.graph().AddNode(*node.op, std::move(ids), node.attrs, std::move(names), node.location);
  if (!id.ok()) return to_.Fail(id.status());
  const std::vector<ValueId> outputs = to_.graph().node(*id).outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    to_.graph().mutable_value(outputs[i]).role = from_.value(node.outputs[i]).role;
    Map(node.outputs[i], {outputs[i]});
  }
}

void GraphCopier::CopyUnderItsName(const Node& node, std::vector<ValueId> inputs) {
  const Result<NodeId> id = to_.graph().CopyNode(from_, node, std::move(inputs));
  if (!id.ok()) return to_.Fail(id.status());
  const std::vector<ValueId>& outputs = to_.graph().node(*id).outputs;
  for (size_t i = 0; i < outputs.size(); ++i) Map(node.outputs[i], {outputs[i]});
}

Value GraphCopier::CopyLeaf(ValueId id) {
  const ValueInfo& info = from_.value(id);
  Graph& graph = to_.graph();
  RIDGE_CHECK(info.kind != ValueKind::kResult, "'" + info.name + "' is read before it is copied");
  ValueId copy = kNoValue;
  if (info.kind == ValueKind::kInput) {
    copy = graph.AddInput(info.name, info.type, info.dim_names);
  } else if (info.kind == ValueKind::kConstant) {
    copy = graph.AddConstant(graph.UniqueName(info.name), info.constant);
  } else {
    copy = graph.AddVariable(info.kind, info.name, info.type, info.init);
  }
  graph.mutable_value(copy).role = info.role;
  graph.mutable_value(copy).trainable = info.trainable;
  return {copy};
}

std::vector<bool> NeededNodes(const Graph& graph, const std::vector<ValueId>& roots) {
  std::vector<bool> value_needed(graph.values().size(), false);
  std::vector<bool> node_needed(graph.nodes().size(), false);
  for (ValueId id : roots) value_needed[static_cast<size_t>(id)] = true;
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    for (ValueId id : node.outputs) {
      if (value_needed[static_cast<size_t>(id)]) node_needed[n] = true;
    }
    if (!node_needed[n]) continue;
    for (ValueId id : node.inputs) {
      if (id != kNoValue) value_needed[static_cast<size_t>(id)] = true;
    }
  }
  return node_needed;
}

Result<Graph> KeepNeeded(const Graph& graph) {
  std::vector<ValueId> roots;
  for (const GraphOutput& output : graph.outputs()) roots.push_back(output.value);
  for (const GraphUpdate& update : graph.updates()) roots.push_back(update.value);
  const std::vector<bool> needed = NeededNodes(graph, roots);
  GraphCopier copier(graph);
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    if (needed[n]) copier.CopyNode(graph.nodes()[n]);
  }
  GraphBuilder& to = copier.to();
  for (const GraphOutput& output : graph.outputs())
    to.Output(output.name, copier.Mapped(output.value));
  for (const GraphUpdate& update : graph.updates())
    to.Update(copier.Mapped(update.variable), copier.Mapped(update.value));
  return std::move(to).Build();
}

}  // namespace ridge
