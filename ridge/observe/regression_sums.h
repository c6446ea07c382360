// RegressionSums: what an evaluation sums up of a regression, in f64, and the metrics of it.
//
// With p the prediction and t the target, over all elements of all samples:
//   MSE = mean (p - t)^2      RMSE = sqrt(MSE)      MAE = mean |p - t|
//   R2  = 1 - sum (p - t)^2 / sum (t - mean t)^2
// The mean of t is one for each element of a sample: scikit-learn's r2_score with
// multioutput="variance_weighted".  The second sum is updated sample by sample (Welford, 1962), so
// that a mean far from 0 costs no digits.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ridge/observe/packed_numbers.h"

namespace ridge {

class RegressionSums {
 public:
  explicit RegressionSums(int64_t elements);  // of a sample

  // The elements of a sample.  Allocates nothing.
  void Add(std::span<const double> prediction, std::span<const double> target);

  // Of samples that another rank counted: adds what its Pack() gave.
  void Pack(PackedNumbers& to) const;
  void Merge(NumberReader& from);

  int64_t samples() const { return samples_; }
  // Nothing without samples.
  std::optional<double> Mse() const;
  std::optional<double> Rmse() const;
  std::optional<double> Mae() const;
  std::optional<double> R2() const;  // nothing either when all targets are equal

 private:
  std::optional<double> MeanOf(double sum) const;

  int64_t samples_ = 0;
  double squares_ = 0, absolutes_ = 0, spread_ = 0;
  std::vector<double> mean_;  // of the targets, by element
};

}  // namespace ridge
