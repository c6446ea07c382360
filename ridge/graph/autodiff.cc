// The walk: nodes backward from the loss; each asks its operator's record for the gradients of its
// inputs.  A value read by several nodes has its gradients added in the order they are met.
// Visits only nodes on a path from a requested value to the loss.
#include "ridge/graph/autodiff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ridge/graph/grad_builder.h"
#include "ridge/graph/gradient_reach.h"

namespace ridge {
namespace {

class ReverseWalk {
 public:
  ReverseWalk(GraphBuilder& builder, Value loss, const std::vector<Value>& wanted)
      : b_(builder), loss_(loss), wanted_(wanted), grads_(builder.graph().values().size()) {
    MarkDependents(wanted);
  }

  Status Run() {
    const TensorType type = loss_.type();
    if (!IsFloat(type.dtype) || type.elements() != 1) {
      return Status(ErrorCode::kInvalidModel,
                    fmt::format("the loss '{}' is {}; it must be one float",
                                b_.graph().value(loss_.id).name, TypeToString(type)));
    }
    RIDGE_RETURN_IF_ERROR(CheckPath());
    const Value one = Expand(ScalarLike(loss_, 1), type.dims);
    grads_[static_cast<size_t>(loss_.id)] = one;
    const auto count = static_cast<NodeId>(grads_.empty() ? 0 : forward_nodes_);
    for (NodeId n = count; n-- > 0;) {
      if (Reached(n)) RIDGE_RETURN_IF_ERROR(Visit(n));
    }
    return b_.status();
  }

  Value Grad(Value v) {
    Value& grad = grads_[static_cast<size_t>(v.id)];
    if (!grad.valid()) grad = Expand(ScalarLike(v, 0), v.dims());
    return grad;
  }

 private:
  // A value depends when its gradient leads to a wanted one.
  void MarkDependents(const std::vector<Value>& wanted) {
    depends_.assign(b_.graph().values().size(), false);
    for (Value v : wanted) depends_[static_cast<size_t>(v.id)] = true;
    forward_nodes_ = b_.graph().nodes().size();
    for (const Node& node : b_.graph().nodes()) {
      bool any = false;
      for (size_t i = 0; i < node.inputs.size(); ++i) any = any || Flows(node, i);
      for (ValueId id : node.outputs) {
        if (any && IsFloat(b_.graph().type(id).dtype)) depends_[static_cast<size_t>(id)] = true;
      }
    }
  }

  // Whether a gradient is wanted for input i of the node.
  bool Flows(const Node& node, size_t i) const {
    return GradientFlows(b_.graph(), node, i) && depends_[static_cast<size_t>(node.inputs[i])];
  }

  // Every node between a wanted value and the loss must have a gradient: all that lack one are
  // named, and the wanted values before them.
  Status CheckPath() const {
    const Graph& graph = b_.graph();
    std::vector<bool> reached(graph.values().size(), false), before = reached;
    reached[static_cast<size_t>(loss_.id)] = true;
    std::vector<std::string> missing;
    for (size_t n = forward_nodes_; n-- > 0;) {
      const Node& node = graph.nodes()[n];
      const bool lacks = node.op->gradient == nullptr;
      bool is_before = AnyOutput(node, before);
      if (lacks && AnyOutput(node, reached) && AnyFlows(node)) {
        missing.push_back(graph.Where(node));
        is_before = true;
      }
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (!Flows(node, i)) continue;
        if (is_before) before[static_cast<size_t>(node.inputs[i])] = true;
        if (!lacks && AnyOutput(node, reached)) reached[static_cast<size_t>(node.inputs[i])] = true;
      }
    }
    return missing.empty() ? Status() : MissingGradients(missing, before);
  }

  Status MissingGradients(std::vector<std::string> nodes, const std::vector<bool>& before) const {
    const Graph& graph = b_.graph();
    std::reverse(nodes.begin(), nodes.end());
    std::vector<ValueId> behind;
    for (Value v : wanted_) {
      if (before[static_cast<size_t>(v.id)]) behind.push_back(v.id);
    }
    return Status(ErrorCode::kUnsupported,
                  fmt::format("{}: no gradient for {} on the path to the loss '{}'. hint: freeze "
                              "what is before: {}",
                              graph.name, fmt::join(nodes, ", "), graph.value(loss_.id).name,
                              NameValues(graph, behind)));
  }

  bool AnyFlows(const Node& node) const {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (Flows(node, i)) return true;
    }
    return false;
  }

  static bool AnyOutput(const Node& node, const std::vector<bool>& marks) {
    return std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId id) { return marks[static_cast<size_t>(id)]; });
  }

  bool Reached(NodeId n) const {
    for (ValueId id : b_.graph().node(n).outputs) {
      if (depends_[static_cast<size_t>(id)] && grads_[static_cast<size_t>(id)].valid()) return true;
    }
    return false;
  }

  Status Visit(NodeId n) {
    const Node node = b_.graph().node(n);
    std::vector<Value> output_grads;
    for (ValueId id : node.outputs) output_grads.push_back(grads_[static_cast<size_t>(id)]);
    std::vector<bool> needs;
    for (size_t i = 0; i < node.inputs.size(); ++i) needs.push_back(Flows(node, i));
    GradBuilder grad(b_, node, std::move(output_grads), needs);
    node.op->gradient(grad);
    RIDGE_RETURN_IF_ERROR(b_.status());
    for (size_t i = 0; i < node.inputs.size(); ++i)
      Accumulate(node.inputs[i], grad.input_grads()[i]);
    return Status();
  }

  void Accumulate(ValueId id, Value grad) {
    if (id == kNoValue || !grad.valid()) return;
    Value& sum = grads_[static_cast<size_t>(id)];
    sum = sum.valid() ? sum + grad : grad;
  }

  GraphBuilder& b_;
  Value loss_;
  std::vector<Value> wanted_;
  std::vector<Value> grads_;   // by forward ValueId
  std::vector<bool> depends_;  // by forward ValueId
  size_t forward_nodes_ = 0;
};

// NAME.grad, when the name is free and the gradient is a node of its own.
void NameGradient(Graph& graph, Value of, Value grad) {
  ValueInfo& info = graph.mutable_value(grad.id);
  if (info.kind != ValueKind::kResult || info.role == ValueRole::kGradient) return;
  info.role = ValueRole::kGradient;
  graph.Rename(grad.id, graph.UniqueName(graph.value(of.id).name + ".grad"));
}

}  // namespace

Result<std::vector<Value>> AppendGradients(GraphBuilder& builder, Value loss,
                                           const std::vector<Value>& with_respect_to) {
  RIDGE_RETURN_IF_ERROR(builder.status());
  ReverseWalk walk(builder, loss, with_respect_to);
  RIDGE_RETURN_IF_ERROR(walk.Run());
  std::vector<Value> grads;
  for (Value v : with_respect_to) {
    grads.push_back(walk.Grad(v));
    NameGradient(builder.graph(), v, grads.back());
  }
  RIDGE_RETURN_IF_ERROR(builder.status());
  return grads;
}

}  // namespace ridge
