#include "ridge/graph/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace ridge {

ValueId Graph::AddValue(ValueInfo info) {
  const auto id = static_cast<ValueId>(values_.size());
  const bool fresh = by_name_.emplace(info.name, id).second;
  RIDGE_CHECK(fresh, "the name '" + info.name + "' is taken");
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

Result<NodeId> Graph::AddNode(const OpDef& op, std::vector<ValueId> inputs, AttrMap attrs,
                              std::vector<std::string> output_names, std::string location) {
  const std::string first = output_names.empty() ? UniqueName(op.name) : output_names[0];
  const auto id = static_cast<NodeId>(nodes_.size());
  Node node{&op, std::move(attrs), std::move(inputs), {}, std::move(location)};
  OpCall call;
  call.where = fmt::format("{} '{}'", op.name, first);
  if (!node.location.empty()) call.where += " (" + node.location + ")";
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
      info.name = UniqueName(first + "." + op.output_names.at(i));
    }
    info.type = std::move(types[i]);
    info.producer = id;
    info.output_index = static_cast<int>(i);
    node.outputs.push_back(AddValue(std::move(info)));
  }
  nodes_.push_back(std::move(node));
  return id;
}

void Graph::AddOutput(std::string name, ValueId value) {
  outputs_.push_back({std::move(name), value});
}

void Graph::AddUpdate(ValueId variable, ValueId value) { updates_.push_back({variable, value}); }

void Graph::Rename(ValueId id, std::string name) {
  ValueInfo& info = mutable_value(id);
  by_name_.erase(info.name);
  info.name = std::move(name);
  const bool fresh = by_name_.emplace(info.name, id).second;
  RIDGE_CHECK(fresh, "the name '" + info.name + "' is taken");
}

std::vector<ValueId> Graph::ValuesOfKind(ValueKind kind) const {
  std::vector<ValueId> ids;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].kind == kind) ids.push_back(static_cast<ValueId>(i));
  }
  return ids;
}

ValueId Graph::FindValue(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? kNoValue : found->second;
}

ValueId Graph::FindOutput(std::string_view name) const {
  for (const GraphOutput& output : outputs_) {
    if (output.name == name) return output.value;
  }
  return kNoValue;
}

std::string Graph::UniqueName(const std::string& wanted) const {
  if (!by_name_.contains(wanted)) return wanted;
  // Galloping, then bisection: names are dense, so 100,000 "add" nodes stay cheap.
  int64_t free = 2;
  while (by_name_.contains(fmt::format("{}_{}", wanted, free))) free *= 2;
  int64_t taken = free / 2;
  while (taken + 1 < free) {
    const int64_t middle = (taken + free) / 2;
    (by_name_.contains(fmt::format("{}_{}", wanted, middle)) ? taken : free) = middle;
  }
  return fmt::format("{}_{}", wanted, free);
}

std::string Graph::Where(const Node& node) const {
  std::string where = fmt::format("{} '{}'", node.op->name, value(node.outputs.at(0)).name);
  if (!node.location.empty()) where += " (" + node.location + ")";
  return where;
}

OpCall Graph::Call(const Node& node) const {
  OpCall call;
  call.where = Where(node);
  for (ValueId id : node.inputs)
    call.inputs.push_back(id == kNoValue ? OpCall::Absent() : type(id));
  for (ValueId id : node.outputs) call.outputs.push_back(type(id));
  call.attrs = node.attrs;
  return call;
}

std::vector<std::vector<NodeId>> Graph::Readers() const {
  std::vector<std::vector<NodeId>> readers(values_.size());
  for (size_t n = 0; n < nodes_.size(); ++n) {
    for (ValueId id : nodes_[n].inputs) {
      if (id == kNoValue) continue;
      auto& list = readers[static_cast<size_t>(id)];
      if (list.empty() || list.back() != static_cast<NodeId>(n))
        list.push_back(static_cast<NodeId>(n));
    }
  }
  return readers;
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

// Where each value of the old graph stands in the new one, in the order of creation.
Status CopyValue(const Graph& from, ValueId id, const std::map<std::string, int64_t>& dims,
                 std::set<std::string>& used, Graph& to) {
  ValueInfo info = from.value(id);
  if (info.kind == ValueKind::kInput) {
    RIDGE_RETURN_IF_ERROR(BindInput(info, dims, used));
    to.AddInput(info.name, info.type, info.dim_names);
  } else if (info.kind == ValueKind::kConstant) {
    to.AddConstant(info.name, info.constant);
  } else {
    to.AddVariable(info.kind, info.name, info.type, info.init);
  }
  ValueInfo& copy = to.mutable_value(static_cast<ValueId>(to.values().size() - 1));
  copy.role = info.role;
  copy.trainable = info.trainable;
  return Status();
}

Status CopyNode(const Graph& from, const Node& node, Graph& to) {
  std::vector<std::string> names;
  for (ValueId id : node.outputs) names.push_back(from.value(id).name);
  RIDGE_ASSIGN_OR_RETURN(const NodeId id,
                         to.AddNode(*node.op, node.inputs, node.attrs, names, node.location));
  for (size_t i = 0; i < node.outputs.size(); ++i)
    to.mutable_value(to.node(id).outputs[i]).role = from.value(node.outputs[i]).role;
  return Status();
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
      RIDGE_RETURN_IF_ERROR(CopyValue(graph, static_cast<ValueId>(i), dims, used, bound));
    } else if (info.output_index == 0) {
      RIDGE_RETURN_IF_ERROR(CopyNode(graph, graph.node(info.producer), bound));
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
