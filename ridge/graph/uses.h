// GraphUses: who reads the values of a graph.
//
// A snapshot of the graph that it was made from; passes copy graphs, so none goes stale within one.
// Time is linear in nodes and inputs.  Who writes a value is Graph::producer().
#pragma once
#include <span>
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

class GraphUses {
 public:
  // `graph` must outlive it.
  explicit GraphUses(const Graph& graph);

  // The nodes that read it, in order, each once.
  std::span<const NodeId> ReadersOf(ValueId id) const {
    const auto i = static_cast<size_t>(id);
    return {readers_.data() + begins_[i], readers_.data() + begins_[i + 1]};
  }
  // How often it is read: by nodes (once for each input), outputs and updates.
  int32_t ReadsOf(ValueId id) const { return reads_[static_cast<size_t>(id)]; }
  bool IsReadOnce(ValueId id) const { return ReadsOf(id) == 1; }
  // The node whose input is the only read; -1: there are other reads, or none.
  NodeId OnlyReader(ValueId id) const;
  // Whether no output and no update reads it.
  bool OnlyNodesRead(ValueId id) const;
  // Whether only `root` and the producers of `inner`, which are results, read any of `inner`: a
  // node that replaces `root` then leaves them without readers.
  bool AreReadOnlyWithin(std::vector<ValueId> inner, const Node& root) const;

 private:
  const Graph& graph_;
  std::vector<int32_t> reads_;   // by value
  std::vector<int32_t> begins_;  // by value, and the end of the last: into readers_
  std::vector<NodeId> readers_;
};

// By value: the one whose bytes a view shows (OpDef::alias_input); other values show their own.
std::vector<ValueId> ViewRoots(const Graph& graph);

}  // namespace ridge
