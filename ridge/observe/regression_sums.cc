#include "ridge/observe/regression_sums.h"

#include <cmath>

namespace ridge {

RegressionSums::RegressionSums(int64_t elements) : mean_(static_cast<size_t>(elements)) {}

void RegressionSums::Add(std::span<const double> prediction, std::span<const double> target) {
  ++samples_;
  for (size_t e = 0; e < mean_.size(); ++e) {
    const double t = target[e];
    const double error = prediction[e] - t;
    squares_ += error * error;
    absolutes_ += std::abs(error);
    const double before = t - mean_[e];
    mean_[e] += before / static_cast<double>(samples_);
    spread_ += before * (t - mean_[e]);
  }
}

std::optional<double> RegressionSums::MeanOf(double sum) const {
  if (samples_ == 0 || mean_.empty()) return std::nullopt;
  return sum / (static_cast<double>(samples_) * static_cast<double>(mean_.size()));
}

std::optional<double> RegressionSums::Mse() const { return MeanOf(squares_); }
std::optional<double> RegressionSums::Mae() const { return MeanOf(absolutes_); }

std::optional<double> RegressionSums::Rmse() const {
  const std::optional<double> mse = Mse();
  if (!mse) return std::nullopt;
  return std::sqrt(*mse);
}

std::optional<double> RegressionSums::R2() const {
  if (samples_ == 0 || spread_ == 0) return std::nullopt;
  return 1 - squares_ / spread_;
}

}  // namespace ridge
