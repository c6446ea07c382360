// SliceSums: where the slices of a step meet.
//
// A sum over the slices is a state with an update that adds to it; the planner knows by
// NamedGraph::slice_sums that it begins at 0 in each step.
#pragma once
#include <string>
#include <vector>

#include "ridge/graph/builder.h"
#include "ridge/plan/planner.h"

namespace ridge {

class SliceSums {
 public:
  // Does nothing for one slice.  `b` must outlive it.
  SliceSums(GraphBuilder& b, int64_t slices) : b_(b), slices_(slices) {}

  // The sum of x, kept in the state `name`.
  Value Add(const std::string& name, Value x);
  // Every output of the graph becomes its sum.
  void AddOutputs();
  // `graph` is what was built, or the part of it that is needed.
  NamedGraph Finish(const std::string& name, Graph graph) const;

 private:
  GraphBuilder& b_;
  const int64_t slices_;
  std::vector<std::string> names_;
};

}  // namespace ridge
