// GraphPart: some nodes of a graph as a graph of their own.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

// Leaves stay what they are; a result that is read and not made here becomes an input of its name,
// unless `copies` holds for its node: then the node comes along.  Outputs have the names of their
// values.  Take nodes in order.
class GraphPart {
 public:
  // `from` must outlive it.
  GraphPart(const Graph& from, std::string name, std::function<bool(const Node&)> copies);

  Status Take(const Node& node);
  // What the value is here.
  Result<ValueId> Get(ValueId id);
  bool Has(ValueId id) const { return here_[static_cast<size_t>(id)] != kNoValue; }
  // A value of `from` that is given from outside, whatever it is.
  void Give(ValueId id);
  Status Output(ValueId id);
  Status Update(const GraphUpdate& update);

  const Graph& graph() const { return to_; }
  // With all leaves before all nodes, as passes expect of a model.
  Result<Graph> Finish() &&;

 private:
  const Graph& from_;
  const std::function<bool(const Node&)> copies_;
  std::vector<ValueId> here_;  // by value of `from`
  Graph to_;
};

}  // namespace ridge
