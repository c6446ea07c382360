#include "ridge/graph/reach.h"

#include <algorithm>

namespace ridge {
namespace {

bool Has(const ValueSet& values, ValueId id) {
  return id != kNoValue && values[static_cast<size_t>(id)];
}

bool HasAny(const ValueSet& values, const std::vector<ValueId>& ids) {
  return std::any_of(ids.begin(), ids.end(), [&](ValueId id) { return Has(values, id); });
}

ValueSet SetOf(const Graph& graph, const std::vector<ValueId>& ids) {
  ValueSet values(graph.values().size(), false);
  for (ValueId id : ids) values[static_cast<size_t>(id)] = true;
  return values;
}

}  // namespace

ValueSet Ancestors(const Graph& graph, const std::vector<ValueId>& roots,
                   const std::function<bool(const Node&, size_t input)>& through) {
  ValueSet found = SetOf(graph, roots);
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    if (!HasAny(found, node.outputs)) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue || (through && !through(node, i))) continue;
      found[static_cast<size_t>(node.inputs[i])] = true;
    }
  }
  return found;
}

ValueSet Descendants(const Graph& graph, const std::vector<ValueId>& roots) {
  ValueSet found = SetOf(graph, roots);
  for (const Node& node : graph.nodes()) {
    if (!HasAny(found, node.inputs)) continue;
    for (ValueId id : node.outputs) found[static_cast<size_t>(id)] = true;
  }
  return found;
}

std::vector<bool> ProducersOf(const Graph& graph, const ValueSet& values) {
  std::vector<bool> producers(graph.nodes().size());
  for (size_t n = 0; n < producers.size(); ++n)
    producers[n] = HasAny(values, graph.nodes()[n].outputs);
  return producers;
}

std::vector<ValueId> OutputValues(const Graph& graph) {
  std::vector<ValueId> values;
  for (const GraphOutput& output : graph.outputs()) values.push_back(output.value);
  return values;
}

std::vector<ValueId> ResultValues(const Graph& graph) {
  std::vector<ValueId> values = OutputValues(graph);
  for (const GraphUpdate& update : graph.updates()) values.push_back(update.value);
  return values;
}

}  // namespace ridge
