// RankShares: what the ranks of a job spend in collectives, step by step.
//
// A collective ends for all at about the same time, so the rank that comes to it last spends the
// least in it: that is what moving and adding takes.  What another rank spends beyond, it waits.
// The constructor allocates.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ridge/train/loop/step_times.h"

namespace ridge {

class RankShares {
 public:
  explicit RankShares(int ranks);

  // A step: nanoseconds in collectives by rank, and the seconds that it took.
  void Add(const std::vector<uint64_t>& collective_ns, double step_s);

  // Over about the last 50 steps: the share of the last rank in them, and who that is.  None: of
  // one rank, or before the first step.
  std::optional<double> communication() const;
  int slowest() const;
  // Seconds of the last rank: the median over the steps.
  double communication_s() const { return communication_s_.Median(); }

 private:
  std::vector<double> recent_s_;  // by rank
  double recent_step_s_ = 0;
  StepTimes communication_s_;
};

}  // namespace ridge
