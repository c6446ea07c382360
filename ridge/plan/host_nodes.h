// HostNodes: what of a program runs on the host, beside a device with a memory of its own.
//
// A parameter that is placed there (--place 'embed.*=cpu') is updated there.  What reads it, or
// computes its gradient, runs where fewer bytes cross: rows are looked up in a table and gradients
// added to them on the host, and a product's weight is copied to the device.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "ridge/graph/named_graph.h"

namespace ridge {

struct HostNodes {
  std::set<std::string> variables;       // that rest in the host's memory
  std::vector<std::vector<bool>> nodes;  // by graph, by node
};

// `parameters` rest on the host.  So do states that their updates read and that have as many
// elements, moments and sums of gradients, and their averages.  Nodes that write one of these are
// there; others where no more bytes cross then, unless they compute for longer than bytes cross.
HostNodes FindHostNodes(const std::vector<NamedGraph>& graphs,
                        const std::vector<std::string>& parameters);

}  // namespace ridge
