// ScalarInputs: writes lr, step and rng into the input slots of a running program.
#pragma once
#include <array>

#include "ridge/runtime/executor.h"

namespace ridge {

class ScalarInputs {
 public:
  // `batch`: samples that one execution of a step reads.
  ScalarInputs(Executor& executor, DType lr_dtype, int64_t batch);

  struct Rng {
    uint64_t seed = 0;
    int64_t first_sample = 0;  // within the update
  };
  // `updates`: done so far.  The graph's `step` is one more; rng's step is `updates`.
  // Inputs that the program does not have are skipped.
  void Write(int slot, double lr, int64_t updates, const Rng& rng);

 private:
  struct Slot {
    void* lr = nullptr;
    int64_t* step = nullptr;
    int64_t* rng = nullptr;  // [slices, 3]
  };
  DType lr_dtype_;
  int64_t slices_ = 1, slice_samples_ = 0;
  std::array<Slot, 2> slots_;
};

}  // namespace ridge
