// StepTimes: the median wall time of a run's steps, in a fixed amount of memory.
//
// Keeps the times of every 2^k-th step, at most 4096 of them; k grows when the store is full.
#pragma once
#include <cstdint>
#include <vector>

namespace ridge {

class StepTimes {
 public:
  // The first `skip` times are warm-up and not counted, unless there are no others.
  explicit StepTimes(int64_t skip = 10);
  void Add(double seconds);
  double Median() const;  // 0 when nothing was added
  int64_t count() const { return count_; }

 private:
  int64_t skip_;
  int64_t count_ = 0;
  int64_t stride_ = 1;
  std::vector<double> times_;
  std::vector<double> warm_up_;
};

}  // namespace ridge
