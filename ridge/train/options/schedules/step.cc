// step: factor = 0.1 ^ floor(step / size), size = ceil(total / 3).
//
// torch.optim.lr_scheduler.StepLR(step_size=size, gamma=0.1): three equal parts, each a tenth of
// the one before, which is the usual recipe for ResNet (30 + 30 + 30 epochs).
#include <cmath>

#include "ridge/train/options/schedules/schedule.h"

namespace ridge {
namespace {

double Factor(int64_t step, int64_t total) {
  const int64_t size = (total + 2) / 3;
  return std::pow(0.1, static_cast<double>(step / size));
}

}  // namespace

Schedule StepSchedule() { return {"step", "a tenth after each third of the run", Factor}; }

}  // namespace ridge
