#include "ridge/lower/split_norms.h"

#include <algorithm>

#include "ridge/graph/passes/rewriter.h"

namespace ridge {
namespace {

bool IsSplit(const Node& node) {
  return node.op->slices_attr != nullptr && node.attrs.integer(node.op->slices_attr) > 1;
}

class Splitter {
 public:
  explicit Splitter(const Graph& graph) : graph_(graph), rewriter_(graph) {}

  Result<Graph> Run() {
    RIDGE_RETURN_IF_ERROR(rewriter_.Walk([this](const Node& node) {
      if (!IsSplit(node)) return rewriter_.Copy(node);
      return node.op->name == "batch_norm" ? SplitForward(node) : SplitGradient(node);
    }));
    return rewriter_.Finish();
  }

 private:
  Status SplitForward(const Node& norm) {
    const std::vector<ValueId> in = rewriter_.Map(norm.inputs);
    RIDGE_ASSIGN_OR_RETURN(const std::vector<ValueId> moments,
                           Parts("batch_norm_moments", {in[0]}, {}, norm));
    RIDGE_ASSIGN_OR_RETURN(const ValueId all, Gather(moments, norm));
    RIDGE_RETURN_IF_ERROR(rewriter_.Emit(*FindOp("batch_norm_combine"), {all}, {},
                                         {norm.outputs[1], norm.outputs[2]}, norm.location));
    std::vector<ValueId> inputs = {in[0], in[1], in[2], rewriter_.Map(norm.outputs[1]),
                                   rewriter_.Map(norm.outputs[2])};
    inputs.insert(inputs.end(), in.begin() + 3, in.end());  // the epilogue's
    return rewriter_.Emit(*FindOp("batch_norm_inference"), std::move(inputs), Without(norm),
                          {norm.outputs[0]}, norm.location);
  }

  Status SplitGradient(const Node& grad) {
    std::vector<ValueId> inputs = rewriter_.Map(grad.inputs);
    RIDGE_RETURN_IF_ERROR(rewriter_.Emit(*FindOp("batch_norm_grad_sums"), inputs, Without(grad),
                                         {grad.outputs[1], grad.outputs[2]}, grad.location));
    RIDGE_ASSIGN_OR_RETURN(const ValueId all,
                           Gather(rewriter_.Map({grad.outputs[1], grad.outputs[2]}), grad));
    inputs.insert(inputs.begin() + 5, all);
    return rewriter_.Emit(*FindOp("batch_norm_grad_input"), std::move(inputs), Without(grad),
                          {grad.outputs[0]}, grad.location);
  }

  static AttrMap Without(const Node& node) {
    AttrMap attrs = node.attrs;
    attrs.erase(node.op->slices_attr);
    return attrs;
  }

  std::string NameOf(const Node& node, const char* part) const {
    return rewriter_.FreshName(graph_.value(node.outputs[0]).name + part);
  }

  // Both outputs of a new node.
  Result<std::vector<ValueId>> Parts(const char* op, std::vector<ValueId> inputs, AttrMap attrs,
                                     const Node& node) {
    RIDGE_ASSIGN_OR_RETURN(const ValueId first,
                           rewriter_.AddNamedNode(*FindOp(op), std::move(inputs), std::move(attrs),
                                                  NameOf(node, ".part"), node.location));
    return rewriter_.to().producer(first)->outputs;
  }

  Result<ValueId> Gather(std::vector<ValueId> parts, const Node& node) {
    return rewriter_.AddNamedNode(*FindOp("gather_slices"), std::move(parts),
                                  {{"slices", node.attrs.at(node.op->slices_attr)}},
                                  NameOf(node, ".slices"), node.location);
  }

  const Graph& graph_;
  GraphRewriter rewriter_;
};

}  // namespace

Result<Graph> SplitNorms(Graph graph) {
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), IsSplit)) return graph;
  return Splitter(graph).Run();
}

}  // namespace ridge
