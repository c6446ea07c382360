// Liveness runs backward from outputs and updates; a node is live when one of its outputs is.
#include "ridge/graph/passes/passes.h"
#include "ridge/graph/passes/rewriter.h"

namespace ridge {
namespace {

std::vector<bool> LiveValues(const Graph& graph) {
  std::vector<bool> live(graph.values().size(), false);
  for (const GraphOutput& output : graph.outputs()) live[static_cast<size_t>(output.value)] = true;
  for (const GraphUpdate& update : graph.updates()) live[static_cast<size_t>(update.value)] = true;
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    bool any = false;
    for (ValueId id : node.outputs) any = any || live[static_cast<size_t>(id)];
    if (!any) continue;
    for (ValueId id : node.outputs) live[static_cast<size_t>(id)] = true;
    for (ValueId id : node.inputs) {
      if (id != kNoValue) live[static_cast<size_t>(id)] = true;
    }
  }
  return live;
}

// Inputs and variables stay in any case.
bool AllLive(const Graph& graph, const std::vector<bool>& live) {
  for (size_t i = 0; i < live.size(); ++i) {
    const ValueKind kind = graph.values()[i].kind;
    if (!live[i] && (kind == ValueKind::kResult || kind == ValueKind::kConstant)) return false;
  }
  return true;
}

}  // namespace

Result<Graph> RemoveDead(Graph graph) {
  const std::vector<bool> live = LiveValues(graph);
  if (AllLive(graph, live)) return graph;
  GraphRewriter rewriter(graph);
  rewriter.KeepConstants(live);
  RIDGE_RETURN_IF_ERROR(rewriter.Walk([&](const Node& node) {
    return live[static_cast<size_t>(node.outputs[0])] ? rewriter.Copy(node) : Status();
  }));
  return rewriter.Finish();
}

}  // namespace ridge
