#include "ridge/graph/gradient_reach.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ridge/graph/reach.h"

namespace ridge {
namespace {

// Nodes that end the ways from `blocked` to the loss: they lead there, and no gradient comes back.
std::vector<NodeId> EndsOfWays(const Graph& graph, const std::vector<ValueId>& blocked,
                               const ValueSet& leads) {
  ValueSet behind(graph.values().size(), false);
  for (ValueId id : blocked) behind[static_cast<size_t>(id)] = true;
  std::vector<NodeId> ends;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    bool flows = false, stops = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue || !behind[static_cast<size_t>(node.inputs[i])]) continue;
      (GradientFlows(graph, node, i) ? flows : stops) = true;
    }
    bool on_the_way = false;
    for (ValueId id : node.outputs) {
      if (flows) behind[static_cast<size_t>(id)] = true;
      on_the_way = on_the_way || leads[static_cast<size_t>(id)];
    }
    if (stops && on_the_way) ends.push_back(static_cast<NodeId>(n));
  }
  return ends;
}

}  // namespace

bool GradientFlows(const Graph& graph, const Node& node, size_t i) {
  const ValueId id = node.inputs[i];
  if (id == kNoValue || !IsFloat(graph.type(id).dtype)) return false;
  const auto& none = node.op->no_gradient_inputs;
  if (std::find(none.begin(), none.end(), static_cast<int>(i)) != none.end()) return false;
  return std::any_of(node.outputs.begin(), node.outputs.end(),
                     [&](ValueId out) { return IsFloat(graph.type(out).dtype); });
}

GradientReach FindGradientReach(const Graph& graph, ValueId loss,
                                const std::vector<ValueId>& wanted) {
  const ValueSet taught = Ancestors(
      graph, {loss}, [&](const Node& node, size_t i) { return GradientFlows(graph, node, i); });
  const ValueSet leads = Ancestors(graph, {loss});
  GradientReach reach;
  for (ValueId id : wanted) {
    if (taught[static_cast<size_t>(id)]) continue;
    (leads[static_cast<size_t>(id)] ? reach.blocked : reach.unused).push_back(id);
  }
  if (!reach.blocked.empty()) reach.blocked_by = EndsOfWays(graph, reach.blocked, leads);
  return reach;
}

std::vector<std::string> DescribeGradientReach(const Graph& graph, const GradientReach& reach) {
  std::vector<std::string> lines;
  if (!reach.unused.empty()) {
    lines.push_back(fmt::format("{}: not trained, the loss does not depend on {}",
                                NameValues(graph, reach.unused),
                                reach.unused.size() == 1 ? "it" : "them"));
  }
  if (!reach.blocked.empty()) {
    std::vector<std::string> nodes;
    for (NodeId n : reach.blocked_by) nodes.push_back(graph.Where(graph.node(n)));
    lines.push_back(fmt::format(
        "{}: not trained, no gradient passes {} on the way to the loss. hint: a loss on an output "
        "before it",
        NameValues(graph, reach.blocked), fmt::join(nodes, ", ")));
  }
  return lines;
}

std::string NameValues(const Graph& graph, const std::vector<ValueId>& values, size_t most) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(most, values.size()); ++i)
    names.push_back(graph.value(values[i]).name);
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (values.size() > most) text += fmt::format(" and {} more", values.size() - most);
  return text;
}

}  // namespace ridge
