#include "ridge/graph/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace ridge {

ValueId Graph::AddValue(ValueInfo info) {
  const auto id = static_cast<ValueId>(values_.size());
  if (FindValue(info.name) != kNoValue) RIDGE_CHECK(false, "the name '" + info.name + "' is taken");
  by_name_.Insert(info.name, id);
  values_.push_back(std::move(info));
  return id;
}

ValueId Graph::AddInput(std::string name, TensorType type, std::vector<std::string> dim_names) {
  ValueInfo info;
  info.name = std::move(name);
  info.type = std::move(type);
  info.kind = ValueKind::kInput;
  info.dim_names = std::move(dim_names);
  return AddValue(std::move(info));
}

ValueId Graph::AddVariable(ValueKind kind, std::string name, TensorType type, Init init) {
  RIDGE_CHECK(kind == ValueKind::kParameter || kind == ValueKind::kState, "a kind of variable");
  ValueInfo info;
  info.name = std::move(name);
  info.type = std::move(type);
  info.kind = kind;
  info.init = std::move(init);
  return AddValue(std::move(info));
}

ValueId Graph::AddConstant(std::string name, Tensor tensor) {
  ValueInfo info;
  info.name = std::move(name);
  info.type = tensor.type();
  info.kind = ValueKind::kConstant;
  info.constant = std::move(tensor);
  return AddValue(std::move(info));
}

ValueId Graph::AddLeaf(ValueInfo leaf) {
  RIDGE_CHECK(leaf.kind != ValueKind::kResult, "'" + leaf.name + "' is no leaf");
  return AddValue(std::move(leaf));
}

Result<NodeId> Graph::AddNode(const OpDef& op, std::vector<ValueId> inputs, AttrMap attrs,
                              std::vector<std::string> output_names, std::string location) {
  const std::string first = output_names.empty() ? UniqueName(op.name) : output_names[0];
  const auto id = static_cast<NodeId>(nodes_.size());
  Node node{&op, std::move(attrs), std::move(inputs), {}, std::move(location)};
  OpCall call;
  call.where = op.name + " '" + first + "'";
  if (!node.location.empty()) call.where += " (" + node.location + ")";
  call.inputs.reserve(node.inputs.size());
  for (ValueId input : node.inputs)
    call.inputs.push_back(input == kNoValue ? OpCall::Absent() : type(input));
  call.attrs = std::move(node.attrs);
  RIDGE_ASSIGN_OR_RETURN(std::vector<TensorType> types, InferCall(op, call));
  node.attrs = std::move(call.attrs);
  for (size_t i = 0; i < types.size(); ++i) {
    ValueInfo info;
    if (i == 0) {
      info.name = first;
    } else if (i < output_names.size() && !output_names[i].empty()) {
      info.name = output_names[i];
    } else {
      info.name = UniqueName(first + "." + op.output_names.at(i % op.output_names.size()));
    }
    info.type = std::move(types[i]);
    info.producer = id;
    info.output_index = static_cast<int>(i);
    node.outputs.push_back(AddValue(std::move(info)));
  }
  nodes_.push_back(std::move(node));
  return id;
}

Result<NodeId> Graph::CopyNode(const Graph& from, const Node& node, std::vector<ValueId> inputs) {
  const auto id = static_cast<NodeId>(nodes_.size());
  bool same_types = inputs.size() == node.inputs.size();
  for (size_t i = 0; same_types && i < inputs.size(); ++i) {
    same_types = inputs[i] == kNoValue || node.inputs[i] == kNoValue
                     ? inputs[i] == node.inputs[i]
                     : type(inputs[i]) == from.type(node.inputs[i]);
  }
  if (!same_types) {
    std::vector<std::string> names;
    for (ValueId output : node.outputs) names.push_back(from.value(output).name);
    RIDGE_RETURN_IF_ERROR(
        AddNode(*node.op, std::move(inputs), node.attrs, std::move(names), node.location).status());
  } else {
    Node copy{node.op, node.attrs, std::move(inputs), {}, node.location};
    copy.outputs.reserve(node.outputs.size());
    for (ValueId output : node.outputs) {
      ValueInfo info;
      const ValueInfo& old = from.value(output);
      info.name = old.name;
      info.type = old.type;
      info.producer = id;
      info.output_index = old.output_index;
      copy.outputs.push_back(AddValue(std::move(info)));
    }
    nodes_.push_back(std::move(copy));
  }
  for (size_t i = 0; i < node.outputs.size(); ++i)
    mutable_value(nodes_.back().outputs[i]).role = from.value(node.outputs[i]).role;
  return id;
}

void Graph::AddOutput(std::string name, ValueId value) {
  outputs_.push_back({std::move(name), value});
}

void Graph::AddUpdate(ValueId variable, ValueId value) { updates_.push_back({variable, value}); }

void Graph::Rename(ValueId id, std::string name) {
  ValueInfo& info = mutable_value(id);
  by_name_.Erase(info.name, id);
  RIDGE_CHECK(FindValue(name) == kNoValue, "the name '" + name + "' is taken");
  info.name = std::move(name);
  by_name_.Insert(info.name, id);
}

const Node* Graph::producer(ValueId id) const {
  const NodeId made_by = id == kNoValue ? -1 : value(id).producer;
  return made_by < 0 ? nullptr : &node(made_by);
}

const Node* Graph::producer(ValueId id, std::string_view op) const {
  const Node* node = producer(id);
  return node != nullptr && node->op->name == op ? node : nullptr;
}

std::vector<ValueId> Graph::ValuesOfKind(ValueKind kind) const {
  std::vector<ValueId> ids;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].kind == kind) ids.push_back(static_cast<ValueId>(i));
  }
  return ids;
}

ValueId Graph::FindValue(std::string_view name) const {
  return by_name_.Find(
      name, [this](ValueId id) { return std::string_view(values_[static_cast<size_t>(id)].name); });
}

ValueId Graph::FindOutput(std::string_view name) const {
  for (const GraphOutput& output : outputs_) {
    if (output.name == name) return output.value;
  }
  return kNoValue;
}

std::string Graph::UniqueName(const std::string& wanted) const {
  const auto taken = [this](const std::string& name) { return FindValue(name) != kNoValue; };
  return taken(wanted) ? FreeNumberedName(wanted, taken) : wanted;
}

std::string Graph::Where(const Node& node) const {
  std::string where = node.op->name + " '" + value(node.outputs.at(0)).name + "'";
  if (!node.location.empty()) where += " (" + node.location + ")";
  return where;
}

OpCall Graph::Call(const Node& node) const {
  OpCall call;
  call.where = Where(node);
  call.inputs.reserve(node.inputs.size());
  call.outputs.reserve(node.outputs.size());
  for (ValueId id : node.inputs)
    call.inputs.push_back(id == kNoValue ? OpCall::Absent() : type(id));
  for (ValueId id : node.outputs) call.outputs.push_back(type(id));
  call.attrs = node.attrs;
  return call;
}

namespace {

// "batch?" marks a dimension without an extent.
std::string BareName(const std::string& dim_name) {
  return dim_name.ends_with('?') ? dim_name.substr(0, dim_name.size() - 1) : dim_name;
}

Status BindInput(ValueInfo& info, const std::map<std::string, int64_t>& dims,
                 std::set<std::string>& used) {
  for (size_t d = 0; d < info.dim_names.size(); ++d) {
    const auto bound = dims.find(BareName(info.dim_names[d]));
    if (bound == dims.end()) continue;
    info.dim_names[d] = bound->first;
    info.type.dims[d] = bound->second;
    used.insert(bound->first);
  }
  return CheckDims(info.type.dims);
}

}  // namespace

Result<Graph> BindDims(const Graph& graph, const std::map<std::string, int64_t>& dims) {
  Graph bound;
  bound.name = graph.name;
  std::set<std::string> used;
  // Ids stay the same because values are copied in order of creation.
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const ValueInfo& info = graph.values()[i];
    if (info.kind != ValueKind::kResult) {
      ValueInfo leaf = info;
      if (leaf.kind == ValueKind::kInput) RIDGE_RETURN_IF_ERROR(BindInput(leaf, dims, used));
      bound.AddLeaf(std::move(leaf));
    } else if (info.output_index == 0) {
      const Node& node = graph.node(info.producer);
      RIDGE_RETURN_IF_ERROR(bound.CopyNode(graph, node, node.inputs).status());
    }
  }
  for (const auto& [name, extent] : dims) {
    if (!used.contains(name)) {
      return Status(ErrorCode::kInvalidArgument,
                    fmt::format("{}: no input has a dimension named '{}'", graph.name, name));
    }
  }
  for (const GraphOutput& output : graph.outputs()) bound.AddOutput(output.name, output.value);
  for (const GraphUpdate& update : graph.updates()) bound.AddUpdate(update.variable, update.value);
  return bound;
}

std::vector<std::string> UnboundDims(const Graph& graph) {
  std::set<std::string> names;
  for (const ValueInfo& info : graph.values()) {
    for (const std::string& name : info.dim_names) {
      if (name.ends_with('?')) names.insert(BareName(name));
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace ridge
