// The product that every step of a recurrent network repeats with the same weight, by oneDNN: the
// weight is packed once a run, then each step reads it in that form.
#pragma once
#include <memory>
#include <optional>

#include "ridge/backend/cpu/kernel_def.h"

namespace ridge::cpu {

class StepProduct {
 public:
  // out [rows, columns] = x [rows, depth] times the weight, which is stored [depth, columns], or
  // [columns, depth] when `transposed`.  f32.
  struct Extents {
    int64_t rows = 0, depth = 0, columns = 0;
    bool transposed = false;
  };
  // nullptr when oneDNN has no fast implementation.
  static std::unique_ptr<StepProduct> Make(const CpuContext& cpu, const Extents& extents,
                                           int threads);
  ~StepProduct();
  // What a choice for another CPU has: the packed weight and a scratchpad, by its library's rules.
  static int64_t WorkspaceElsewhere(const CpuContext& cpu, const Extents& extents, int threads);

  int64_t WorkspaceBytes() const;
  int64_t HeapBytes() const;  // as KernelChoice::heap_bytes
  // REQUIRES of both: the calling thread's team has the threads of Make(), and `workspace` is the
  // same.  Pack() comes first.
  Status Pack(const float* weight, void* workspace);
  Status Run(const float* x, float* out, void* workspace);

 private:
  StepProduct();
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace ridge::cpu
