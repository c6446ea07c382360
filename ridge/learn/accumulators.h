// Accumulators: sums over the slices of a step.
//
// Each sum is a state with an update that adds to it; NamedGraph::accumulators tells the planner to
// start it at 0 in each step.  Of a share (NamedGraph::share) the update is the slice's addend.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/graph/builder.h"
#include "ridge/graph/named_graph.h"

namespace ridge {

class Accumulators {
 public:
  // Over the slices of a batch, of which a share may be computed here; `wire` as of a NamedGraph.
  // Does nothing for one slice.  `b` must outlive it.
  Accumulators(GraphBuilder& b, int64_t slices, const std::optional<SliceShare>& share = {},
               DType wire = DType::kF32)
      : b_(b), slices_(slices), share_(share), wire_(wire) {}

  // The sum of x, kept in the state `name`.
  Value Add(const std::string& name, Value x);
  // Replaces every output of the graph that is one number by its sum; the others are stacked.
  void AddOutputs();
  // `graph`: the built graph, or the part of it that is needed.
  NamedGraph Finish(const std::string& name, Graph graph) const;

 private:
  GraphBuilder& b_;
  const int64_t slices_;
  const std::optional<SliceShare> share_;
  const DType wire_;
  std::vector<std::string> names_, stacked_;
};

}  // namespace ridge
