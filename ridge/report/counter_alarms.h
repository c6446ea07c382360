// CounterAlarms: what a GPU's counters say against a run, as sentences with a cause and an action.
// Each kind is said once.
//
//   idle       SMs had work for less than 70 % of the time: waiting for data, for launches, or
//              kernels too small for the GPU
//   heat       heat held the clock down in a tenth of the samples
//   power      the power limit held it down in half of them
//   setting    a setting held it down in half of them
//   bandwidth  memory was moved at more than two thirds of its peak: less than 1.5 x is left
//   errors     memory had errors that ECC could not correct
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "ridge/core/device_counters.h"

namespace ridge {

// Some seconds of updates without evaluations and checkpoints.
struct CounterWindow {
  DeviceCounters counters;  // CounterSums::Since() of it
  double seconds = 0;       // of the updates
  double wait_s = 0;        // that they waited for data
};

class CounterAlarms {
 public:
  // What is new.
  std::vector<std::string> Judge(const CounterWindow& window);
  // By errors alone, for samples of any time.
  std::vector<std::string> JudgeErrors(const DeviceCounters& counters);

 private:
  enum class Kind : uint8_t { kIdle, kHeat, kPower, kSetting, kBandwidth, kErrors };
  void Add(Kind kind, std::string sentence, std::vector<std::string>& to);  // unless it was said

  std::set<Kind> said_;
};

}  // namespace ridge
