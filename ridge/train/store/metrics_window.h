// MetricsWindow: sums over the training steps since the last report.
#pragma once
#include <cstdint>
#include <optional>

namespace ridge {

struct MetricsWindow {
  int64_t steps = 0;
  int64_t samples = 0;
  double loss_sum = 0;  // of the steps' mean losses
  double correct = 0;   // samples
  double wait_s = 0;    // for data
  double time_s = 0;

  void Add(double loss, double correct_samples, int64_t sample_count, double wait, double time) {
    ++steps;
    samples += sample_count;
    loss_sum += loss;
    correct += correct_samples;
    wait_s += wait;
    time_s += time;
  }
  double loss() const { return steps == 0 ? 0 : loss_sum / static_cast<double>(steps); }
  double accuracy() const { return samples == 0 ? 0 : correct / static_cast<double>(samples); }
  double samples_s() const { return time_s > 0 ? static_cast<double>(samples) / time_s : 0; }
  double step_s() const { return steps == 0 ? 0 : time_s / static_cast<double>(steps); }
  double input_wait() const { return time_s > 0 ? wait_s / time_s : 0; }
  bool operator==(const MetricsWindow&) const = default;
};

}  // namespace ridge
