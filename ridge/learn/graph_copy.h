// GraphCopier: copies a graph node by node; the caller may replace single nodes.
//
// Leaves (inputs, variables, constants) keep name, type, role and initial value.
#pragma once
#include <vector>

#include "ridge/graph/builder.h"

namespace ridge {

class GraphCopier {
 public:
  explicit GraphCopier(const Graph& from);

  // The copy of a value; a leaf is copied at the first call.
  // REQUIRES: a result's node was copied, or Map() was called for it.
  Value Mapped(ValueId id);
  std::vector<Value> MappedInputs(const Node& node);
  void Map(ValueId id, Value copy);
  void CopyNode(const Node& node);  // errors are the builder's
  GraphBuilder& to() { return to_; }

 private:
  void CopyUnderItsName(const Node& node, std::vector<ValueId> inputs);
  Value CopyLeaf(ValueId id);

  const Graph& from_;
  GraphBuilder to_;
  std::vector<Value> map_;
};

// The part of a graph that its outputs and updates need, without unread inputs and variables.
Result<Graph> KeepNeeded(const Graph& graph);

// Which nodes `roots` need, by NodeId.
std::vector<bool> NeededNodes(const Graph& graph, const std::vector<ValueId>& roots);

}  // namespace ridge
