#include "ridge/graph/uses.h"

#include <algorithm>
#include <numeric>

namespace ridge {
namespace {

// Visits (value, node) once for each value that a node reads, in the order of the nodes.
// `last_reader` is scratch, by value.
template <typename Visit>
void ForEachReader(const Graph& graph, std::vector<NodeId>& last_reader, const Visit& visit) {
  std::fill(last_reader.begin(), last_reader.end(), -1);
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    for (const ValueId id : graph.nodes()[n].inputs) {
      if (id == kNoValue || last_reader[static_cast<size_t>(id)] == static_cast<NodeId>(n))
        continue;
      last_reader[static_cast<size_t>(id)] = static_cast<NodeId>(n);
      visit(static_cast<size_t>(id), static_cast<NodeId>(n));
    }
  }
}

}  // namespace

GraphUses::GraphUses(const Graph& graph)
    : graph_(graph), reads_(graph.values().size(), 0), begins_(graph.values().size() + 1, 0) {
  for (const Node& node : graph.nodes()) {
    for (const ValueId id : node.inputs) {
      if (id != kNoValue) ++reads_[static_cast<size_t>(id)];
    }
  }
  for (const GraphOutput& output : graph.outputs()) ++reads_[static_cast<size_t>(output.value)];
  for (const GraphUpdate& update : graph.updates()) ++reads_[static_cast<size_t>(update.value)];
  std::vector<NodeId> last_reader(graph.values().size());
  ForEachReader(graph, last_reader, [this](size_t value, NodeId) { ++begins_[value + 1]; });
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
  readers_.resize(static_cast<size_t>(begins_.back()));
  std::vector<int32_t> next(begins_.begin(), begins_.end() - 1);
  ForEachReader(graph, last_reader,
                [&](size_t value, NodeId n) { readers_[static_cast<size_t>(next[value]++)] = n; });
}

NodeId GraphUses::OnlyReader(ValueId id) const {
  const std::span<const NodeId> readers = ReadersOf(id);
  return IsReadOnce(id) && readers.size() == 1 ? readers[0] : -1;
}

bool GraphUses::OnlyNodesRead(ValueId id) const {
  int32_t by_nodes = 0;
  for (const NodeId reader : ReadersOf(id)) {
    const std::vector<ValueId>& inputs = graph_.node(reader).inputs;
    by_nodes += static_cast<int32_t>(std::count(inputs.begin(), inputs.end(), id));
  }
  return by_nodes == ReadsOf(id);
}

bool GraphUses::AreReadOnlyWithin(std::vector<ValueId> inner, const Node& root) const {
  std::sort(inner.begin(), inner.end());
  inner.erase(std::unique(inner.begin(), inner.end()), inner.end());
  std::vector<int32_t> within(inner.size(), 0);
  const auto count = [&](const Node& node) {
    for (const ValueId id : node.inputs) {
      const auto at = std::lower_bound(inner.begin(), inner.end(), id);
      if (at != inner.end() && *at == id) ++within[static_cast<size_t>(at - inner.begin())];
    }
  };
  count(root);
  for (const ValueId id : inner) count(*graph_.producer(id));
  for (size_t i = 0; i < inner.size(); ++i) {
    if (ReadsOf(inner[i]) != within[i]) return false;
  }
  return true;
}

std::vector<ValueId> ViewRoots(const Graph& graph) {
  std::vector<ValueId> roots(graph.values().size());
  std::iota(roots.begin(), roots.end(), 0);
  for (const Node& node : graph.nodes()) {
    if (node.op->alias_input < 0) continue;
    const ValueId source = node.inputs[static_cast<size_t>(node.op->alias_input)];
    for (const ValueId id : node.outputs)
      roots[static_cast<size_t>(id)] = roots[static_cast<size_t>(source)];
  }
  return roots;
}

}  // namespace ridge
