// The numbers behind a graph's inputs and variables, so that a graph's text alone says what runs.
//
// Inputs: floats in [-1, 1) drawn by name; integers the remainders of such a draw by the number
// behind "below" in their name ("label.below5" is from 0 to 4); `rng` is {0, 1, 0}.  Variables:
// their Init with seed 0.
#pragma once
#include <map>
#include <string>

#include "ridge/graph/graph.h"

namespace ridge {

using NamedTensors = std::map<std::string, Tensor>;

Tensor LeafNumbers(const ValueInfo& leaf);

// Of every input, parameter and state of the graph.
NamedTensors LeavesOf(const Graph& graph);

// The same numbers in the types that the leaves of `graph` have, by name.
NamedTensors LeavesAs(const Graph& graph, const NamedTensors& leaves);

}  // namespace ridge
