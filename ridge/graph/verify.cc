// The invariants of every graph.  Types are not trusted: each node's are inferred and compared.
// The order of values is part of the contract: the text form lists values in that order.
#include "ridge/graph/verify.h"

#include <fmt/format.h>

#include <set>
#include <unordered_set>

namespace ridge {
namespace {

class GraphChecker {
 public:
  explicit GraphChecker(const Graph& graph) : graph_(graph) {}

  Status Run() {
    for (const ValueInfo& value : graph_.values()) RIDGE_RETURN_IF_ERROR(CheckValue(value));
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      RIDGE_RETURN_IF_ERROR(CheckNode(static_cast<NodeId>(n)));
    }
    if (outputs_seen_ != results_) return Error("a result has no node that writes it");
    RIDGE_RETURN_IF_ERROR(CheckOutputs());
    return CheckUpdates();
  }

 private:
  Status Error(const std::string& text) const {
    return Status(ErrorCode::kInvalidModel, fmt::format("graph '{}': {}", graph_.name, text));
  }

  Status CheckValue(const ValueInfo& value) {
    if (value.name.empty()) return Error("a value has no name");
    if (!names_.insert(value.name).second) {
      return Error(fmt::format("two values are named '{}'", value.name));
    }
    if (Status status = CheckDims(value.type.dims); !status.ok()) {
      return Error(fmt::format("'{}': {}", value.name, status.message()));
    }
    if (value.kind == ValueKind::kResult) {
      ++results_;
      return Status();
    }
    return CheckLeaf(value);
  }

  Status CheckLeaf(const ValueInfo& value) const {
    if (value.producer != -1) {
      return Error(fmt::format("'{}' is no result, but a node writes it", value.name));
    }
    if (!value.dim_names.empty() && value.dim_names.size() != value.type.dims.size()) {
      return Error(fmt::format("'{}' is {} with {} names of dimensions", value.name,
                               TypeToString(value.type), value.dim_names.size()));
    }
    if (value.kind == ValueKind::kConstant) {
      if (value.constant.in_memory()) return CheckTensor(value, value.constant);
      return Error(fmt::format("the constant '{}' is not in memory", value.name));
    }
    const bool variable = value.kind != ValueKind::kInput;
    if (variable && value.init.kind == Init::Kind::kTensor) {
      return CheckTensor(value, value.init.tensor);
    }
    return Status();
  }

  Status CheckTensor(const ValueInfo& value, const Tensor& tensor) const {
    const bool there = !tensor.in_memory() || tensor.data() != nullptr;
    if (tensor.type() == value.type && there) return Status();
    return Error(fmt::format("'{}' is {}, its values are {}", value.name, TypeToString(value.type),
                             TypeToString(tensor.type())));
  }

  Status CheckNode(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op == nullptr) return Error(fmt::format("node {} has no operator", id));
    if (node.outputs.empty()) {
      return Error(fmt::format("node {} ({}) has no outputs", id, node.op->name));
    }
    for (ValueId output : node.outputs) RIDGE_RETURN_IF_ERROR(CheckWritten(id, output));
    for (ValueId input : node.inputs) RIDGE_RETURN_IF_ERROR(CheckRead(id, input));
    return CheckTypes(node);
  }

  // Outputs are the next results in the order of values.
  Status CheckWritten(NodeId id, ValueId output) {
    const Node& node = graph_.node(id);
    if (!Exists(output)) {
      return Error(fmt::format("node {} ({}) writes value {} of {}", id, node.op->name, output,
                               graph_.values().size()));
    }
    const ValueInfo& value = graph_.value(output);
    const auto index = static_cast<size_t>(value.output_index);
    const bool own = value.kind == ValueKind::kResult && value.producer == id &&
                     index < node.outputs.size() && node.outputs[index] == output;
    if (!own) return Error(fmt::format("'{}' is not what {} writes", value.name, node.op->name));
    if (output <= last_result_) {
      return Error(
          fmt::format("'{}' is out of order: values are listed as nodes write them", value.name));
    }
    last_result_ = output;
    ++outputs_seen_;
    return Status();
  }

  Status CheckRead(NodeId id, ValueId input) const {
    if (input == kNoValue) return Status();
    const Node& node = graph_.node(id);
    if (!Exists(input)) {
      return Error(fmt::format("{} reads value {} of {}", graph_.Where(node), input,
                               graph_.values().size()));
    }
    if (input < node.outputs[0]) return Status();
    return Error(fmt::format("{} reads '{}' before it is defined", graph_.Where(node),
                             graph_.value(input).name));
  }

  Status CheckTypes(const Node& node) const {
    OpCall call = graph_.Call(node);
    const std::vector<TensorType> stored = std::move(call.outputs);
    call.outputs.clear();
    RIDGE_ASSIGN_OR_RETURN(const std::vector<TensorType> types, InferCall(*node.op, call));
    if (!SameAttrs(call.attrs, node.attrs)) {
      return Error(graph_.Where(node) + " has incomplete attributes");
    }
    if (types.size() != stored.size()) {
      return Error(fmt::format("{} has {} outputs; the operator gives {}", graph_.Where(node),
                               stored.size(), types.size()));
    }
    for (size_t i = 0; i < types.size(); ++i) {
      if (types[i] == stored[i]) continue;
      return Error(fmt::format("{}: output '{}' is {}; the operator gives {}", graph_.Where(node),
                               graph_.value(node.outputs[i]).name, TypeToString(stored[i]),
                               TypeToString(types[i])));
    }
    return Status();
  }

  Status CheckOutputs() const {
    std::set<std::string> names;
    for (const GraphOutput& output : graph_.outputs()) {
      if (!Exists(output.value)) {
        return Error(fmt::format("the output '{}' has no value", output.name));
      }
      if (output.name.empty() || !names.insert(output.name).second) {
        return Error(fmt::format("two outputs are named '{}'", output.name));
      }
    }
    return Status();
  }

  Status CheckUpdates() const {
    std::set<ValueId> updated;
    for (const GraphUpdate& update : graph_.updates()) {
      if (!Exists(update.variable) || !Exists(update.value)) {
        return Error("an update has no variable or no value");
      }
      const ValueInfo& variable = graph_.value(update.variable);
      if (variable.kind != ValueKind::kParameter && variable.kind != ValueKind::kState) {
        return Error(fmt::format("'{}' is updated, but is no variable", variable.name));
      }
      if (!(variable.type == graph_.type(update.value))) {
        return Error(fmt::format("the update of '{}' changes its type from {} to {}", variable.name,
                                 TypeToString(variable.type),
                                 TypeToString(graph_.type(update.value))));
      }
      if (!updated.insert(update.variable).second) {
        return Error(fmt::format("'{}' is updated twice", variable.name));
      }
    }
    return Status();
  }

  bool Exists(ValueId id) const {
    return id >= 0 && static_cast<size_t>(id) < graph_.values().size();
  }

  const Graph& graph_;
  std::unordered_set<std::string> names_;
  ValueId last_result_ = -1;
  size_t results_ = 0;
  size_t outputs_seen_ = 0;
};

}  // namespace

Status CheckGraph(const Graph& graph) { return GraphChecker(graph).Run(); }

Status CheckComputes(const Graph& graph, const std::string& where) {
  if (!graph.outputs().empty() || !graph.updates().empty()) return Status();
  const std::string what =
      graph.values().empty()
          ? "the graph is empty. hint: define values and end with a line 'output NAME'"
          : "the graph has no output and no update, so there is nothing to compute. hint: end with "
            "a line 'output NAME'";
  return Status(ErrorCode::kInvalidModel, where + ": " + what);
}

}  // namespace ridge
