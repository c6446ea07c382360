// The input slots of a running program: InputSlots for batches, and ScalarInputs, which writes lr,
// step, rng and the rounding of moments.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ridge/data/batch_loader.h"
#include "ridge/runtime/executor.h"

namespace ridge {

// The inputs that a step of the program reads, in the types that it has them in: those that its
// steps would round first are rounded as they are loaded (lower/narrow_inputs.h).
BatchSpec AsPlanned(const Program& program, BatchSpec spec);

// Pointers to both input slots of a StepPlan's inputs, in the order of the spec.
// REQUIRES: the types are the program's.  A batch leaves
// for a device with a memory of its own when it is in its slot; `executor` outlives what fills
// them.
std::vector<BatchSlot> InputSlots(Executor& executor, const BatchSpec& spec);

// Bytes of the slots of several specs; an input that they share counts once.
int64_t SlotBytes(Executor& executor, const std::vector<BatchSpec>& specs, int64_t batch);

class ScalarInputs {
 public:
  // `batch`: samples per execution of a step.
  ScalarInputs(Executor& executor, DType lr_dtype, int64_t batch);

  struct Rng {
    uint64_t seed = 0;
    int64_t first_sample = 0;  // within the update
    int64_t samples = 0;       // of the batch; 0: as many as the constructor was given
  };
  // `updates`: number of completed updates.  The graph's `step` is one more; that of rng and of the
  // rounding is `updates`.  Skips inputs that the program does not have.
  void Write(int slot, double lr, int64_t updates, const Rng& rng);
  // The names of the inputs that it does not write.
  static std::vector<std::string> BatchInputs(const Program& program);

 private:
  struct Slot {
    void* lr = nullptr;
    int64_t* step = nullptr;
    int64_t* rng = nullptr;       // [slices, 3]
    int64_t* rounding = nullptr;  // [2]
  };
  DType lr_dtype_;
  int64_t slices_ = 1, batch_ = 0;
  SliceShare share_;  // of the batch
  std::array<Slot, 2> slots_;
};

}  // namespace ridge
