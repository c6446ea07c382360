// Gradients against differences of the loss along random directions.
#pragma once
#include <string>

#include "tests/generate/dice.h"
#include "tests/generate/leaves.h"

namespace ridge {

enum class Difference { kAgrees, kKink, kDiffers };

// Moves all leaves that have a gradient, then one of them alone.  `gradients` by leaf.  `text` says
// what differs.  kKink: no step was small enough to say anything, so a kink or a jump is near.
Result<Difference> CompareWithDifferences(const Graph& forward, const NamedTensors& leaves,
                                          const NamedTensors& gradients, Dice dice,
                                          std::string& text);

}  // namespace ridge
