// ReadLossScaling: the loss scale and the skipped updates of a running program, from its states.
#pragma once
#include <optional>
#include <string>

#include "ridge/observe/loss_scaling.h"
#include "ridge/runtime/executor.h"
#include "ridge/train/options/options.h"

namespace ridge {

// After `steps` updates, skipped ones included.  Nothing where the program has no loss scale.
// REQUIRES: the outputs of the last step have been read.
Result<std::optional<LossScaling>> ReadLossScaling(Executor& executor, const TrainOptions& options,
                                                   int64_t steps);

// Why a constant scale of the options is too small or too large, and what to do; else empty.
std::string ConstantScaleDoubt(const TrainOptions& options);

}  // namespace ridge
