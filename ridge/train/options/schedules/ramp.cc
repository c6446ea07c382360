// ramp: factor = 1e-7^(1 - step / (total - 1)): from 1e-7 of the learning rate up to it, each step
// by the same factor.
//
// What `ridge train --find-lr` runs.  Smith, "Cyclical Learning Rates", WACV 2017, section 3.3, on
// a logarithmic axis.
#include <algorithm>
#include <cmath>

#include "ridge/train/options/schedules/schedule.h"

namespace ridge {
namespace {

constexpr double kLowest = 1e-7;

double Factor(int64_t step, int64_t total) {
  if (total < 2) return 1;
  const double done =
      static_cast<double>(std::min(step, total - 1)) / static_cast<double>(total - 1);
  return std::pow(kLowest, 1 - done);
}

}  // namespace

Schedule RampSchedule() { return {"ramp", "up from 1e-7 of it by a constant factor", Factor}; }

}  // namespace ridge
