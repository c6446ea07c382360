// LossShapeOf: `--label-smoothing`, `--class-weights`, `--focal` and `--dice` as the loss takes
// them.
#pragma once
#include "ridge/learn/loss_shape.h"
#include "ridge/train/options/options.h"

namespace ridge {

// The numbers that a run has kept, else those of `--class-weights`: a list, or a file of numbers
// between commas or white space.  `auto` leaves them to BalancedClassWeights.
// Fails with kInvalidArgument for what is no weight, kInvalidData when the file cannot be read.
Result<LossShape> LossShapeOf(const TrainOptions& options);

}  // namespace ridge
