// TimedCall: one call of an operator on the best kernel of a backend, with buffers of its own.
#pragma once
#include <memory>
#include <vector>

#include "ridge/backend/backend.h"

namespace ridge::cpu {

class TimedCall {
 public:
  // Inputs are filled with random numbers.  `available`: of the inputs; empty means row-major.
  static Result<TimedCall> Make(Backend& backend, const char* op, std::vector<TensorType> inputs,
                                AttrMap attrs, std::vector<LayoutId> available = {});

  static constexpr int kLeastRounds = 5;
  // Runs until `budget_s` is spent, at least kLeastRounds times; the shortest time.
  double Best(double budget_s);

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
