// When the gradients of an update exist: what devices that share a batch wait for.
#pragma once
#include <cstdint>
#include <vector>

#include "ridge/plan/program.h"

namespace ridge {

// The gradient of one parameter.
struct GradientReady {
  double ahead = 0;  // share of the update's seconds that its kernels still take behind it
  int64_t bytes = 0;
};

// Those of the parameters that an update changes, the first one that exists first.  With
// accumulation they exist in the last micro-batch.  Nodes that update variables count as seconds of
// the update, never as seconds ahead: they wait for the sums.  So do the nodes of sums over slices
// in a tree, though an addend exists before them.
std::vector<GradientReady> GradientTimes(const Program& program, int64_t accumulate);

}  // namespace ridge
