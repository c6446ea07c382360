// Exporters write layer norm, gelu and silu as chains of primitive nodes.  As one operator they
// have a fast kernel, an exact gradient, and keep one value for the backward pass instead of six.
//
// Each pattern matches backward from its last node.  A match at an inner node (a layer norm before
// its scale) is rewritten too; nodes without readers are dropped at the end.
#include "ridge/graph/passes/patterns.h"

#include <algorithm>

#include "ridge/graph/passes/passes.h"
#include "ridge/graph/passes/rewriter.h"

namespace ridge {
namespace {

constexpr int64_t kMostScanned = 1024;

// Whether each inner value is read only by inner nodes and the root.
bool NobodyElseReads(const Graph& graph, const PatternMatch& match, const Node& root,
                     const std::vector<int32_t>& reads) {
  std::vector<int32_t> inside(match.inner.size(), 0);
  const auto count = [&](const Node& node) {
    for (ValueId id : node.inputs) {
      const auto at = std::find(match.inner.begin(), match.inner.end(), id);
      if (at != match.inner.end()) ++inside[static_cast<size_t>(at - match.inner.begin())];
    }
  };
  count(root);
  for (ValueId id : match.inner) count(graph.node(graph.value(id).producer));
  for (size_t i = 0; i < match.inner.size(); ++i) {
    if (reads[static_cast<size_t>(match.inner[i])] != inside[i]) return false;
  }
  return true;
}

PatternMatch Match(const Graph& graph, const Node& root, const std::vector<int32_t>& reads) {
  if (root.outputs.size() != 1) return {};
  for (const auto match_one : {MatchSilu, MatchGelu, MatchLayerNorm}) {
    PatternMatch match = match_one(graph, root);
    if (match.op == nullptr) continue;
    std::sort(match.inner.begin(), match.inner.end());
    match.inner.erase(std::unique(match.inner.begin(), match.inner.end()), match.inner.end());
    if (NobodyElseReads(graph, match, root, reads)) return match;
  }
  return {};
}

}  // namespace

Result<Graph> RecognizePatterns(Graph graph) {
  const std::vector<int32_t> reads = CountReads(graph);
  const bool any = std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
    return Match(graph, node, reads).op != nullptr;
  });
  if (!any) return RemoveDead(std::move(graph));
  GraphRewriter rewriter(graph);
  RIDGE_RETURN_IF_ERROR(rewriter.Walk([&](const Node& node) -> Status {
    PatternMatch match = Match(graph, node, reads);
    if (match.op == nullptr) return rewriter.Copy(node);
    return rewriter.Emit(*match.op, rewriter.Map(match.inputs), std::move(match.attrs),
                         node.outputs, node.location);
  }));
  RIDGE_ASSIGN_OR_RETURN(Graph recognized, rewriter.Finish());
  return RemoveDead(std::move(recognized));
}

const Node* WriterOf(const Graph& graph, ValueId id, std::string_view op) {
  if (id == kNoValue) return nullptr;
  const ValueInfo& value = graph.value(id);
  if (value.kind != ValueKind::kResult) return nullptr;
  const Node& node = graph.node(value.producer);
  return op.empty() || node.op->name == op ? &node : nullptr;
}

std::optional<double> UniformOf(const Graph& graph, ValueId id) {
  if (const Node* expand = WriterOf(graph, id, "expand")) id = expand->inputs[0];
  const Tensor& tensor = graph.value(id).constant;
  const bool known = graph.value(id).kind == ValueKind::kConstant && tensor.elements() > 0 &&
                     tensor.elements() <= kMostScanned;
  if (!known) return std::nullopt;
  for (int64_t k = 1; k < tensor.elements(); ++k) {
    if (tensor.at(k) != tensor.at(0)) return std::nullopt;
  }
  return tensor.at(0);
}

}  // namespace ridge
