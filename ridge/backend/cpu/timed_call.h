// TimedCall: one call of an operator on a backend's best kernel, with its own buffers.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "ridge/backend/backend.h"
#include "ridge/core/process.h"

namespace ridge::cpu {

// The clock of measurements, and their spreads.
struct Watch {
  std::function<double()> now = MonotonicSeconds;
  std::vector<double> spreads = {};  // per measurement: second shortest over shortest, minus 1
};

// Calls run() at least `least_rounds` times, until `budget_s` is spent and the two shortest times
// agree within 10 %: on a busy machine a preempted thread makes a single time ten times too long.
// Stops after ten budgets.  Returns the shortest time.
double ShortestTime(Watch& watch, double budget_s, int least_rounds,
                    const std::function<void()>& run);

class TimedCall {
 public:
  // Inputs are filled with random numbers.  `available`: the inputs' layouts; empty means
  // row-major.  `alone`: a kernel on the calling thread only.
  static Result<TimedCall> Make(Backend& backend, const char* op, std::vector<TensorType> inputs,
                                AttrMap attrs, std::vector<LayoutId> available = {},
                                bool alone = false);

  double Best(Watch& watch, double budget_s);  // ShortestTime of the kernel
  void RunOnce();

  const Cost& cost() const { return cost_; }
  const KernelChoice& choice() const { return choice_; }

 private:
  Cost cost_;
  KernelChoice choice_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<Tensor> storage_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  void* workspace_ = nullptr;
};

// `bytes` of random floats in (-1, 1); 64-byte aligned.
Tensor RandomBytes(int64_t bytes);

}  // namespace ridge::cpu
