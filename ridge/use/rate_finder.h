// RateFinder: what the losses of a training with a rising learning rate say about a good one.
//
// Smith, "Cyclical Learning Rates for Training Neural Networks", WACV 2017; the moving average and
// where it counts as diverged are those of fastai's finder.
#pragma once
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

// One update: the learning rate it used, and the loss before it.
struct RatePoint {
  double lr = 0, loss = 0;
};

struct RateFinding {
  std::vector<RatePoint> smoothed;  // a moving average of the losses, up to where they diverge
  double lowest_lr = 0;             // where it is lowest
  double steepest_lr = 0;           // where it falls fastest over the logarithm of the rate
  double suggested_lr = 0;          // a tenth of lowest_lr, but no more than steepest_lr
  bool diverged = false;            // the largest rates were too large
};

// Points in the order of the updates, their rates rising.  Fails with kInvalidData when there are
// fewer than 10 finite losses, or when none of them is clearly below the first.
Result<RateFinding> FindRate(const std::vector<RatePoint>& points);

}  // namespace ridge
