#include "ridge/train/loop/read_loss_scaling.h"

#include "ridge/learn/loss_scale.h"

namespace ridge {

Result<std::optional<LossScaling>> ReadLossScaling(Executor& executor, const TrainOptions& options,
                                                   int64_t steps) {
  if (executor.FindPersistent(kUpdatesState) == nullptr) return {std::nullopt};
  Transfers& transfers = executor.transfers();
  RIDGE_ASSIGN_OR_RETURN(const void* updates, transfers.Read(kUpdatesState));
  LossScaling scaling;
  scaling.skipped_steps = steps - *static_cast<const int64_t*>(updates);
  if (executor.FindPersistent(kLossScaleState) != nullptr) {
    RIDGE_ASSIGN_OR_RETURN(const void* scale, transfers.Read(kLossScaleState));
    scaling.scale = *static_cast<const float*>(scale);
  } else {
    RIDGE_ASSIGN_OR_RETURN(const LossScaleOptions constant, ParseLossScale(options.loss_scale));
    scaling.scale = constant.scale;
  }
  return {scaling};
}

std::string ConstantScaleDoubt(const TrainOptions& options) {
  const auto scale = LossScaleOf(options);
  if (!scale.ok() || !scale->has_value() || (*scale)->dynamic) return "";
  const std::string doubt = LossScaleDoubt((*scale)->scale);
  return doubt.empty() ? "" : doubt + ". hint: --loss-scale dynamic";
}

}  // namespace ridge
