// What the loss scale of a run has come to (learn/loss_scale.h).
#pragma once
#include <cstdint>

namespace ridge {

struct LossScaling {
  double scale = 0;           // of the next update
  int64_t skipped_steps = 0;  // of all updates so far, those that did not happen
};

}  // namespace ridge
