#include "ridge/train/loop/step_times.h"

#include "ridge/core/median.h"

namespace ridge {
namespace {

constexpr size_t kMostTimes = 4096;

}  // namespace

StepTimes::StepTimes(int64_t skip) : skip_(skip) {
  times_.reserve(kMostTimes);
  warm_up_.reserve(static_cast<size_t>(skip));
}

void StepTimes::Add(double seconds) {
  const int64_t index = count_++ - skip_;
  if (index < 0) return warm_up_.push_back(seconds);
  if (index % stride_ != 0) return;
  if (times_.size() == kMostTimes) {  // keeps every second one
    for (size_t i = 0; i < kMostTimes / 2; ++i) times_[i] = times_[2 * i];
    times_.resize(kMostTimes / 2);
    stride_ *= 2;
  }
  times_.push_back(seconds);
}

double StepTimes::Median() const {
  const std::vector<double>& times = times_.empty() ? warm_up_ : times_;
  return times.empty() ? 0 : ridge::Median(times);
}

}  // namespace ridge
