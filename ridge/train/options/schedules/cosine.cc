// cosine: factor = (1 + cos(pi * step / total)) / 2, and 0 from `total` on.
//
// torch.optim.lr_scheduler.CosineAnnealingLR(T_max=total, eta_min=0) in its closed form.
// Loshchilov and Hutter, "SGDR", ICLR 2017, without restarts.
#include <algorithm>
#include <cmath>

#include "ridge/train/options/schedules/schedule.h"

namespace ridge {
namespace {

double Factor(int64_t step, int64_t total) {
  const double done = static_cast<double>(std::min(step, total)) / static_cast<double>(total);
  return (1 + std::cos(M_PI * done)) / 2;
}

}  // namespace

Schedule CosineSchedule() { return {"cosine", "down to 0 along half a cosine", Factor}; }

}  // namespace ridge
