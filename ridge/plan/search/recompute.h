// Which values of a training step are recomputed instead of kept (docs/design/0013).
#pragma once
#include <cstdint>

#include "ridge/lower/cost_model.h"
#include "ridge/lower/recompute.h"

namespace ridge {

// How much is recomputed.  Values are taken in order of bytes freed per second, as long as each
// lowers the peak; the limits end that earlier.
struct RecomputeLimits {
  bool any = false;  // false: none, whatever the other limits are
  // All values that free more bytes than they need, even where the peak does not fall; the limits
  // below do not apply.
  bool every = false;
  double least_bytes_per_s = 0;      // least bytes that a value frees per second of its cost
  int64_t enough_bytes = INT64_MAX;  // stop when the peak has fallen by so much
  int64_t most_values = INT64_MAX;
  bool expensive = false;  // also values that take products and convolutions
};

// Chooses among the values that are live at the schedule's peak and read after it: those that one
// pass over memory recomputes (with `expensive`: all), and whose recomputation keeps fewer bytes
// than it frees.  Empty when there is none, and for graphs without gradients.  `nominal` gives the
// seconds.
// Pure: same arguments, same set.
//
// Sizes are those of row-major, unfused tensors, so the peak is only close to the plan's.
RecomputeSet FindRecomputable(const Graph& graph, const RecomputeLimits& limits,
                              const CostModel& nominal);

}  // namespace ridge
