#include "ridge/core/stage_times.h"

#include <cmath>
#include <numeric>

namespace ridge {

const char* InputStageName(InputStage stage) {
  static constexpr const char* kNames[kInputStages] = {"read",    "decode",    "resize",
                                                       "augment", "normalize", "collate"};
  return kNames[static_cast<size_t>(stage)];
}

double StageSeconds::total() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

double StageSeconds::Share(InputStage stage) const {
  const double all = total();
  return all > 0 ? At(stage) / all : 0;
}

StageSeconds StageSeconds::Since(const StageSeconds& before) const {
  StageSeconds since;
  for (size_t s = 0; s < kInputStages; ++s) since.seconds[s] = seconds[s] - before.seconds[s];
  since.samples = samples - before.samples;
  return since;
}

void StageTotals::Add(const StageSeconds& sums) {
  for (size_t s = 0; s < kInputStages; ++s)
    nanoseconds_[s].fetch_add(std::llround(sums.seconds[s] * 1e9), std::memory_order_relaxed);
  samples_.fetch_add(sums.samples, std::memory_order_relaxed);
}

StageSeconds StageTotals::Read() const {
  StageSeconds sums;
  for (size_t s = 0; s < kInputStages; ++s)
    sums.seconds[s] = static_cast<double>(nanoseconds_[s].load(std::memory_order_relaxed)) / 1e9;
  sums.samples = samples_.load(std::memory_order_relaxed);
  return sums;
}

}  // namespace ridge
