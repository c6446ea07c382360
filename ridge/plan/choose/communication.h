// Communication: what sums of gradients add to a step of devices that share a batch, and what many
// devices lose besides.
#pragma once
#include <vector>

#include "ridge/plan/cost/gradient_times.h"
#include "ridge/plan/hardware/collectives.h"

namespace ridge {

struct Communication {
  double busy_s = 0;     // of the sums, if nothing ran beside them
  double exposed_s = 0;  // what of them is not hidden behind the kernels
};

// Gradients leave in buckets of 25 MB as soon as they exist and wait for the sum before them; an
// update begins when the last one has arrived.  Beside kernels a sum is slower.  `gradients`: the
// first one that exists first; `step_s`: of an update without sums.
Communication SumGradients(const DeviceGroup& group, const std::vector<GradientReady>& gradients,
                           double step_s);

// Of a collective that takes `alone_s` alone and begins while kernels of `ahead_s` are still to
// run: 1.34 times as long beside them.
double SecondsBesideKernels(double alone_s, double ahead_s);

// A step waits for the slowest of its devices: 1 + 1 % * sqrt(2 ln count), the mean of the largest
// of `count` normal times that spread by 1 %.
double StragglerFactor(int64_t count);

// Share of a long training's time that is lost to failures: an interruption each 50,675 hours of a
// device (419 unexpected ones in 54 days on 16,384 H100: Llama 3, table 5), each with half an hour
// of restart and repeated work; at most 0.9.
double LostShare(int64_t count);

}  // namespace ridge
