// relu(batch_norm(x)), read forward and backward -> the same, and before the first backward reader
// relu(batch_norm_inference(x, mean, var)): x and the statistics are kept for the gradient anyway.
//
// Run before `fuse`, which joins the copies with the gradients that read them.
#include "ridge/lower/recompute.h"

#include <algorithm>

#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/uses.h"

namespace ridge {
namespace {

bool IsBatchNormResult(const Graph& graph, ValueId id) {
  return graph.producer(id)->op->name == "batch_norm";
}

class Recomputer {
 public:
  Recomputer(const Graph& graph, const RecomputeSet& set)
      : graph_(graph), set_(set), rewriter_(graph), again_(graph.values().size(), kNoValue) {}

  Result<Graph> Run() {
    RIDGE_RETURN_IF_ERROR(rewriter_.Walk([this](const Node& node) { return Visit(node); }));
    RIDGE_ASSIGN_OR_RETURN(Graph graph, rewriter_.Finish());
    MarkCopies(graph);
    return graph;
  }

 private:
  // A copy is joined with its only reader where its original was.
  void MarkCopies(Graph& graph) const {
    const GraphUses uses(graph_);
    for (size_t i = 0; i < again_.size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      if (again_[i] == kNoValue || uses.IsReadOnce(id)) continue;
      graph.mutable_value(rewriter_.Map(id)).role = ValueRole::kRecomputed;
      graph.mutable_value(again_[i]).role = ValueRole::kRecomputed;
    }
  }

  Status Visit(const Node& node) {
    const auto n = static_cast<size_t>(graph_.IdOf(node));
    if (!set_.late_readers[n]) return rewriter_.Copy(node);
    RIDGE_ASSIGN_OR_RETURN(std::vector<ValueId> inputs, LateInputs(node.inputs));
    return rewriter_.CopyOn(node, std::move(inputs));
  }

  Result<std::vector<ValueId>> LateInputs(const std::vector<ValueId>& ids) {
    std::vector<ValueId> inputs;
    for (ValueId id : ids) {
      if (id != kNoValue && set_.values[static_cast<size_t>(id)])
        RIDGE_RETURN_IF_ERROR(Rematerialize(id));
      const bool has_copy = id != kNoValue && again_[static_cast<size_t>(id)] != kNoValue;
      inputs.push_back(has_copy ? again_[static_cast<size_t>(id)] : rewriter_.Map(id));
    }
    return inputs;
  }

  Status Rematerialize(ValueId id) {
    if (again_[static_cast<size_t>(id)] != kNoValue) return Status();
    const Node& node = *graph_.producer(id);
    RIDGE_ASSIGN_OR_RETURN(std::vector<ValueId> inputs, LateInputs(RematInputs(graph_, id)));
    const bool norm = IsBatchNormResult(graph_, id);
    const OpDef& op = norm ? *FindOp("batch_norm_inference") : *node.op;
    AttrMap attrs = node.attrs;
    if (norm) attrs.erase(node.op->slices_attr);  // the statistics are given
    const std::string name = rewriter_.FreshName(graph_.value(node.outputs[0]).name + ".again");
    RIDGE_ASSIGN_OR_RETURN(
        const ValueId first,
        rewriter_.AddNamedNode(op, std::move(inputs), std::move(attrs), name, node.location));
    again_[static_cast<size_t>(id)] = first;
    return Status();
  }

  const Graph& graph_;
  const RecomputeSet& set_;
  GraphRewriter rewriter_;
  std::vector<ValueId> again_;  // by old value: its copy, of the new graph
};

}  // namespace

bool RecomputeSet::empty() const {
  return std::find(values.begin(), values.end(), true) == values.end();
}

bool MayRematerialize(const Graph& graph, ValueId id) {
  const ValueInfo& value = graph.value(id);
  return value.kind == ValueKind::kResult && value.output_index == 0 &&
         graph.producer(id)->op->recompute != Recompute::kNever;
}

bool IsCheapToRematerialize(const Graph& graph, ValueId id) {
  if (!MayRematerialize(graph, id)) return false;
  const OpDef& op = *graph.producer(id)->op;
  return op.recompute == Recompute::kCheap &&
         (op.cost_class == CostClass::kElementwise || op.cost_class == CostClass::kMove ||
          op.cost_class == CostClass::kNorm);
}

std::vector<ValueId> RematInputs(const Graph& graph, ValueId id) {
  const Node& node = *graph.producer(id);
  std::vector<ValueId> inputs = node.inputs;
  if (IsBatchNormResult(graph, id)) inputs.insert(inputs.end(), {node.outputs[1], node.outputs[2]});
  return inputs;
}

Result<Graph> RecomputeValues(const Graph& graph, const RecomputeSet& set) {
  return Recomputer(graph, set).Run();
}

}  // namespace ridge
