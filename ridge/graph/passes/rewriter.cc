#include "ridge/graph/passes/rewriter.h"

#include "ridge/graph/name_table.h"

namespace ridge {

GraphRewriter::GraphRewriter(const Graph& from)
    : from_(from), map_(from.values().size(), kNoValue) {
  to_.name = from.name;
  to_.Reserve(from.values().size());
}

Status GraphRewriter::Walk(const std::function<Status(const Node&)>& visit) {
  for (size_t i = 0; i < from_.values().size(); ++i) {
    const ValueInfo& value = from_.values()[i];
    if (value.kind != ValueKind::kResult) {
      Use(static_cast<ValueId>(i));
    } else if (value.output_index == 0) {
      RIDGE_RETURN_IF_ERROR(visit(from_.node(value.producer)));
    }
  }
  return Status();
}

void GraphRewriter::CopyLeaves() {
  for (size_t i = 0; i < from_.values().size(); ++i) {
    if (from_.values()[i].kind != ValueKind::kResult) CopyLeaf(static_cast<ValueId>(i));
  }
}

ValueId GraphRewriter::Map(ValueId old) const {
  return old == kNoValue ? kNoValue : map_.at(static_cast<size_t>(old));
}

std::vector<ValueId> GraphRewriter::Map(const std::vector<ValueId>& old) const {
  std::vector<ValueId> now;
  now.reserve(old.size());
  for (ValueId id : old) now.push_back(Map(id));
  return now;
}

ValueId GraphRewriter::Use(ValueId old) {
  const bool leaf = old != kNoValue && from_.value(old).kind != ValueKind::kResult;
  if (leaf && Map(old) == kNoValue) CopyLeaf(old);
  return Map(old);
}

std::vector<ValueId> GraphRewriter::Use(const std::vector<ValueId>& old) {
  std::vector<ValueId> now;
  now.reserve(old.size());
  for (ValueId id : old) now.push_back(Use(id));
  return now;
}

void GraphRewriter::Set(ValueId old, ValueId now) {
  map_.at(static_cast<size_t>(old)) = now;
  ValueInfo& value = to_.mutable_value(now);
  // A gradient stays one when the node that gave it its last form is gone.
  if (value.kind == ValueKind::kResult && value.role == ValueRole::kNone) {
    value.role = from_.value(old).role;
  }
}

Status GraphRewriter::CopyOn(const Node& node, std::vector<ValueId> inputs) {
  RIDGE_ASSIGN_OR_RETURN(const NodeId copy, to_.CopyNode(from_, node, std::move(inputs)));
  for (size_t i = 0; i < node.outputs.size(); ++i)
    map_.at(static_cast<size_t>(node.outputs[i])) = to_.node(copy).outputs[i];
  return Status();
}

void GraphRewriter::SetConstant(ValueId old, Tensor tensor) {
  Set(old, to_.AddConstant(from_.value(old).name, std::move(tensor)));
}

Status GraphRewriter::Emit(const OpDef& op, std::vector<ValueId> inputs, AttrMap attrs,
                           const std::vector<ValueId>& results, const std::string& location) {
  std::vector<std::string> names;
  names.reserve(results.size());
  for (ValueId id : results) names.push_back(from_.value(id).name);
  RIDGE_ASSIGN_OR_RETURN(const NodeId node, to_.AddNode(op, std::move(inputs), std::move(attrs),
                                                        std::move(names), location));
  for (size_t i = 0; i < results.size(); ++i) Set(results[i], to_.node(node).outputs.at(i));
  return Status();
}

Result<ValueId> GraphRewriter::AddNamedNode(const OpDef& op, std::vector<ValueId> inputs,
                                            AttrMap attrs, const std::string& name,
                                            const std::string& location) {
  RIDGE_ASSIGN_OR_RETURN(const NodeId node,
                         to_.AddNode(op, std::move(inputs), std::move(attrs), {name}, location));
  return to_.node(node).outputs[0];
}

ValueId GraphRewriter::AddConstant(const std::string& wanted_name, Tensor tensor) {
  return to_.AddConstant(FreshName(wanted_name), std::move(tensor));
}

std::string GraphRewriter::FreshName(const std::string& wanted) const {
  const auto taken = [&](const std::string& name) {
    return from_.FindValue(name) != kNoValue || to_.FindValue(name) != kNoValue;
  };
  return taken(wanted) ? FreeNumberedName(wanted, taken) : wanted;
}

Result<Graph> GraphRewriter::Finish() {
  for (const GraphOutput& output : from_.outputs()) to_.AddOutput(output.name, Use(output.value));
  for (const GraphUpdate& update : from_.updates()) {
    const ValueId value = Use(update.value);
    to_.AddUpdate(Use(update.variable), value);
  }
  return std::move(to_);
}

void GraphRewriter::CopyLeaf(ValueId id) {
  const ValueInfo& value = from_.value(id);
  const bool wanted = keep_.empty() || keep_[static_cast<size_t>(id)];
  if (value.kind == ValueKind::kConstant && !wanted) return;
  map_[static_cast<size_t>(id)] = to_.AddLeaf(value);
}

}  // namespace ridge
