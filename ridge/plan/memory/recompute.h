// Which values of a training step are computed again rather than kept (docs/design/0013).
#pragma once
#include <cstdint>

#include "ridge/core/device_profile.h"
#include "ridge/graph/passes/recompute.h"

namespace ridge {

// How much is made again.  Values are taken one by one, those first that free most bytes for their
// time, as long as each lowers the peak; the limits only say where that ends.
struct RecomputeLimits {
  bool any = false;  // without it nothing is, whatever follows
  // Whatever frees more bytes than it needs, also where the peak stays: the limits below are off.
  bool every = false;
  double least_bytes_per_s = 0;      // that a value frees for its seconds
  int64_t enough_bytes = INT64_MAX;  // by which the peak has to fall
  int64_t most_values = INT64_MAX;
};

// Of the values that live over the schedule's peak and that later nodes read once more: some that
// cost a sweep over memory to make again, and whose making needs fewer bytes to be kept than they
// have.  Empty when there is none, and for graphs without gradients.  `nominal` gives the seconds.
// Pure: same arguments, same set.
//
// Sizes are those of row-major tensors and nothing is fused yet, so the peak is near the plan's and
// not the same.
RecomputeSet FindRecomputable(const Graph& graph, const RecomputeLimits& limits,
                              const DeviceProfile& nominal);

}  // namespace ridge
