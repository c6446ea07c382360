// From annotations of some values to a proposal for all: how each would lie if nothing had to move.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/graph/graph.h"
#include "ridge/partition/split.h"

namespace ridge {

// What is given.  Only what variables are stored as may be pending: sums of gradients, which no
// device has complete until they are read.
struct Layout {
  // How values lie where they are computed or read; parameters without an entry are whole.
  std::map<ValueId, Split> use;
  // How variables lie from step to step, and inputs as they are given; those without an entry as
  // they are used.
  std::map<ValueId, Split> stored;
  // How outputs lie, by name; those without an entry are whole.
  std::map<std::string, Split> outputs = {};
};

struct Proposal {
  std::vector<Split> splits;  // by value
  int rounds = 0;             // until nothing changed; the last one changed nothing
};

// By value: a variable, or one seen through casts and views, such as a weight in 16 bits.
std::vector<bool> FindWeights(const Graph& graph);

// Values with an entry, parameters and constants keep what they have; the others get the cuts of
// their nodes' letters, forward and backward in turn, until nothing changes.  An axis that two
// letters of a node claim goes to neither, unless one claim is a weight's: tensor beats sequence.
Proposal Propagate(const Graph& graph, const Layout& layout, const Mesh& mesh);

}  // namespace ridge
