// Exporters write layer norm, gelu and silu as chains of primitive nodes.  As one operator they
// have a fast kernel, an exact gradient, and keep one value for the backward pass instead of six.
//
// An operator's record has its pattern (OpDef::pattern), which matches backward from the last node.
// A match at an inner node (a layer norm before its scale) is rewritten too; nodes without readers
// are dropped at the end.
#include <algorithm>
#include <vector>

#include "ridge/graph/passes/passes.h"
#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/pattern.h"
#include "ridge/graph/uses.h"

namespace ridge {
namespace {

const std::vector<const OpDef*>& OpsWithPatterns() {
  static const auto ops = [] {
    std::vector<const OpDef*> some;
    for (const OpDef& op : AllOps()) {
      if (op.pattern != nullptr) some.push_back(&op);
    }
    return some;
  }();
  return ops;
}

PatternMatch Match(const Graph& graph, const Node& root, const GraphUses& uses) {
  if (root.outputs.size() != 1) return {};
  for (const OpDef* op : OpsWithPatterns()) {
    PatternMatch match = op->pattern(graph, root);
    if (match.op != nullptr && uses.AreReadOnlyWithin(match.inner, root)) return match;
  }
  return {};
}

}  // namespace

Result<Graph> RecognizePatterns(Graph graph) {
  const GraphUses uses(graph);
  const bool any = std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
    return Match(graph, node, uses).op != nullptr;
  });
  if (!any) return RemoveDead(std::move(graph));
  GraphRewriter rewriter(graph);
  RIDGE_RETURN_IF_ERROR(rewriter.Walk([&](const Node& node) -> Status {
    PatternMatch match = Match(graph, node, uses);
    if (match.op == nullptr) return rewriter.Copy(node);
    return rewriter.Emit(*match.op, rewriter.Map(match.inputs), std::move(match.attrs),
                         node.outputs, node.location);
  }));
  RIDGE_ASSIGN_OR_RETURN(Graph recognized, rewriter.Finish());
  return RemoveDead(std::move(recognized));
}

}  // namespace ridge
