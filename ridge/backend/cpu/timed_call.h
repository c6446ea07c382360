// TimedCall: one call of an operator on the best kernel of a backend, with buffers of its own.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "ridge/backend/backend.h"
#include "ridge/core/process.h"

namespace ridge::cpu {

// The clock of measurements, and what they tell of the machine.
struct Watch {
  std::function<double()> now = MonotonicSeconds;
  std::vector<double> spreads = {};  // of each measurement: second shortest over shortest, less 1
};

// Calls run() `least_rounds` times or more, until `budget_s` is spent and the two shortest times
// agree within 10 %: on a busy machine a thread that waits for its turn makes any single time ten
// times too long.  Gives up after ten budgets.  Returns the shortest time.
double ShortestTime(Watch& watch, double budget_s, int least_rounds,
                    const std::function<void()>& run);

class TimedCall {
 public:
  // Inputs are filled with random numbers.  `available`: of the inputs; empty means row-major.
  // `alone`: on the calling thread.
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

// Bytes as random floats in (-1, 1); 64-byte aligned.
Tensor RandomBytes(int64_t bytes);

}  // namespace ridge::cpu
