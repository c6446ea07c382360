// The invariants of a Graph, checked between passes and after parsing.
#pragma once
#include "ridge/graph/graph.h"

namespace ridge {

// Names are unique; every input of a node is defined before it; types and attributes equal those of
// InferCall; outputs and updates exist, an update has its variable's type and each variable has at
// most one.
Status CheckGraph(const Graph& graph);

// A model computes something: it has an output or an update.  `where` begins the message.  Fails
// with kInvalidModel.
Status CheckComputes(const Graph& graph, const std::string& where);

}  // namespace ridge
