// MadeUpInputs: random tensors that a graph can compute with, to compare two graphs on, or to time
// one.
#pragma once
#include <map>
#include <string>

#include "ridge/graph/graph.h"

namespace ridge {

// One tensor an input, a function of its name, type and `seed` alone.  Floats are uniform in
// [-1, 1); bools 0 or 1.  Integers are below the smallest extent that they index (the rows of
// a gather, the classes of a loss), through whatever reshapes them; those that index nothing are
// 0 or 1, which suits masks and lengths.  `rng` is a seed, a step and a sample.
std::map<std::string, Tensor> MadeUpInputs(const Graph& graph, uint64_t seed);

}  // namespace ridge
