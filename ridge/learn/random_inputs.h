// RandomInputs: random, valid inputs of a graph, to compare two graphs or to time one.
#pragma once
#include <map>
#include <string>

#include "ridge/graph/graph.h"

namespace ridge {

// One tensor per input, a function of its name, type and `seed` only.  Floats are uniform in
// [-1, 1); bools are 0 or 1.  Integers are below the extent that they index (IndexExtents); those
// that index nothing are 0 or 1, which suits masks and lengths.  `rng` is a seed, a step and a
// sample.
std::map<std::string, Tensor> RandomInputs(const Graph& graph, uint64_t seed);

}  // namespace ridge
