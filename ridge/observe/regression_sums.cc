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

void RegressionSums::Pack(PackedNumbers& to) const {
  PackAll<double>({static_cast<double>(samples_), squares_, absolutes_, spread_}, to);
  PackAll(mean_, to);
}

// Chan, Golub and LeVeque, 1979.
void RegressionSums::Merge(NumberReader& from) {
  const auto before = static_cast<double>(samples_);
  const double added = from.Take();
  samples_ += static_cast<int64_t>(added);
  for (double* sum : {&squares_, &absolutes_, &spread_}) *sum += from.Take();
  for (double& mean : mean_) {
    const double apart = from.Take() - mean;
    if (added == 0) continue;
    spread_ += apart * apart * before * added / (before + added);
    mean += apart * added / (before + added);
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
