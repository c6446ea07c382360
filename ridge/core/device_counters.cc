#include "ridge/core/device_counters.h"

#include <algorithm>

namespace ridge {

void CounterSums::Add(const DeviceCounters& sample) {
  for (size_t f = 0; f < kCounterFields.size(); ++f) {
    const auto field = kCounterFields[f].value;
    if (!(sample.*field)) continue;
    sum_[f] += *(sample.*field);
    ++told_[f];
    if (!(first_.*field)) first_.*field = sample.*field;
  }
  last_ = sample;
  ++samples_;
}

void CounterSums::AddWindow(const CounterSums& before, const CounterSums& now) {
  for (size_t f = 0; f < kCounterFields.size(); ++f) {
    const auto field = kCounterFields[f].value;
    sum_[f] += now.sum_[f] - before.sum_[f];
    told_[f] += now.told_[f] - before.told_[f];
    if (first_.*field) continue;
    first_.*field = before.last_.*field ? before.last_.*field : now.first_.*field;
  }
  last_ = now.last_;
  samples_ += now.samples_ - before.samples_;
}

DeviceCounters CounterSums::Since(const CounterSums& before) const {
  DeviceCounters window = last_;
  for (size_t f = 0; f < kCounterFields.size(); ++f) {
    const auto field = kCounterFields[f].value;
    std::optional<double>& value = window.*field;
    const int64_t told = told_[f] - before.told_[f];
    if (!kCounterFields[f].total) {
      if (told > 0) value = (sum_[f] - before.sum_[f]) / static_cast<double>(told);
    } else if (value) {
      const double begin = (before.last_.*field).value_or(*(first_.*field));
      value = std::max(0.0, *value - begin);
    }
  }
  return window;
}

}  // namespace ridge
