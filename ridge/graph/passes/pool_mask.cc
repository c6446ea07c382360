// relu_grad(max_pool_grad(i, dy), x) -> max_pool_grad(i, relu_grad(dy, p)),  where p, i =
// max_pool(x)
//
// A gradient reaches only the winner of a window, and the winner's value is p, so x > 0 there is
// p > 0: the mask may be applied to the small tensor, bit for bit.  The gain: the mask reads
// and writes a quarter of the bytes (2x2 windows), and x is dead after the forward pass.
#include "ridge/graph/passes/pool_mask.h"

#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/uses.h"

namespace ridge {
namespace {

struct Masked {
  const Node* pool = nullptr;
  const Node* pool_grad = nullptr;
};

// The pool and its gradient, if `mask` is the only reader of that gradient.
Masked FindMasked(const Graph& graph, const GraphUses& uses, const Node& mask) {
  if (mask.op->name != "relu_grad") return {};
  const Node* pool_grad = graph.producer(mask.inputs[0], "max_pool_grad");
  if (pool_grad == nullptr || !uses.IsReadOnce(mask.inputs[0])) return {};
  const Node* pool = graph.producer(pool_grad->inputs[0], "max_pool");
  if (pool == nullptr || pool->inputs[0] != mask.inputs[1]) return {};
  return {pool, pool_grad};
}

Status EmitMasked(const Masked& found, const Node& mask, GraphRewriter& rewriter) {
  const Node& grad = *found.pool_grad;
  const std::string& name = rewriter.from().value(grad.outputs[0]).name;
  RIDGE_ASSIGN_OR_RETURN(
      const ValueId masked,
      rewriter.AddNamedNode(*mask.op, rewriter.Map({grad.inputs[1], found.pool->outputs[0]}),
                            mask.attrs, rewriter.FreshName(name + ".masked"), mask.location));
  return rewriter.Emit(*grad.op, {rewriter.Map(grad.inputs[0]), masked}, grad.attrs, mask.outputs,
                       grad.location);
}

}  // namespace

Result<Graph> SinkReluGrad(Graph graph) {
  const GraphUses uses(graph);
  std::vector<bool> replaced(graph.nodes().size(), false);
  bool any = false;
  for (const Node& node : graph.nodes()) {
    const Masked found = FindMasked(graph, uses, node);
    if (found.pool == nullptr) continue;
    replaced[static_cast<size_t>(graph.IdOf(*found.pool_grad))] = true;
    any = true;
  }
  if (!any) return graph;
  GraphRewriter rewriter(graph);
  RIDGE_RETURN_IF_ERROR(rewriter.Walk([&](const Node& node) -> Status {
    if (replaced[static_cast<size_t>(graph.IdOf(node))]) return Status();
    const Masked found = FindMasked(graph, uses, node);
    return found.pool == nullptr ? rewriter.Copy(node) : EmitMasked(found, node, rewriter);
  }));
  return rewriter.Finish();
}

}  // namespace ridge
