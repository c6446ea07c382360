// StageTimes: where the time of reading samples goes.
//
// A reader that is given sums adds the seconds of its own work to them, not those of the readers
// below it.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>

#include "ridge/core/process.h"

namespace ridge {

enum class InputStage : uint8_t {
  kRead,       // bytes of files, from the disk or the system's cache
  kDecode,     // pictures to pixels, luma
  kResize,     // with crops
  kAugment,    // random transforms
  kNormalize,  // to the types and values of the model's inputs
  kCollate,    // the rest: the order of samples, labels, checks, padding
};
inline constexpr size_t kInputStages = 6;
const char* InputStageName(InputStage stage);  // "decode"

// Sums over samples.
struct StageSeconds {
  std::array<double, kInputStages> seconds{};
  int64_t samples = 0;

  double& At(InputStage stage) { return seconds[static_cast<size_t>(stage)]; }
  double At(InputStage stage) const { return seconds[static_cast<size_t>(stage)]; }
  double total() const;
  double Share(InputStage stage) const;  // of the total, 0 to 1
  StageSeconds Since(const StageSeconds& before) const;
  bool operator==(const StageSeconds&) const = default;
};

// Adds the time of its life to a stage.  Without sums it reads no clock.
class StageTimer {
 public:
  StageTimer(StageSeconds* sums, InputStage stage)
      : sums_(sums), stage_(stage), begin_(sums == nullptr ? 0 : MonotonicSeconds()) {}
  ~StageTimer() {
    if (sums_ != nullptr) sums_->At(stage_) += MonotonicSeconds() - begin_;
  }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  StageSeconds* const sums_;
  const InputStage stage_;
  const double begin_;
};

// Sums that several threads add to.
class StageTotals {
 public:
  void Add(const StageSeconds& sums);
  StageSeconds Read() const;

 private:
  std::array<std::atomic<int64_t>, kInputStages> nanoseconds_{};
  std::atomic<int64_t> samples_{0};
};

}  // namespace ridge
