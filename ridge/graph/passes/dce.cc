// Nodes and leaves that outputs and updates are not computed from go.
#include <algorithm>

#include "ridge/graph/passes/passes.h"
#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/reach.h"

namespace ridge {
namespace {

bool AllConstantsLive(const Graph& graph, const ValueSet& live) {
  for (size_t i = 0; i < live.size(); ++i) {
    if (!live[i] && graph.values()[i].kind == ValueKind::kConstant) return false;
  }
  return true;
}

}  // namespace

Result<Graph> RemoveDead(Graph graph) {
  const ValueSet live = Ancestors(graph, ResultValues(graph));
  const std::vector<bool> nodes = ProducersOf(graph, live);
  const bool all = std::find(nodes.begin(), nodes.end(), false) == nodes.end();
  if (all && AllConstantsLive(graph, live)) return graph;
  GraphRewriter rewriter(graph);
  rewriter.KeepConstants(live);
  RIDGE_RETURN_IF_ERROR(rewriter.Walk([&](const Node& node) {
    const NodeId id = graph.IdOf(node);
    return nodes[static_cast<size_t>(id)] ? rewriter.Copy(node) : Status();
  }));
  return rewriter.Finish();
}

Result<Graph> KeepNeeded(const Graph& graph) {
  const std::vector<bool> nodes = ProducersOf(graph, Ancestors(graph, ResultValues(graph)));
  GraphRewriter rewriter(graph);
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n]) RIDGE_RETURN_IF_ERROR(rewriter.Copy(graph.nodes()[n]));
  }
  return rewriter.Finish();
}

}  // namespace ridge
