// CostModel: a device's answers about seconds, rates and caches.
//
// A KernelQuery's nominal model decides: a choice that a measurement moves would change the bits of
// a run from day to day.  A measured one predicts the seconds that are shown.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "ridge/core/device_profile.h"
#include "ridge/graph/op_def.h"

namespace ridge {

struct KernelChoice;

// What a node does, whichever kernel runs it.
struct Work {
  CostClass cost_class = CostClass::kMove;
  DType dtype = DType::kF32;  // its peak rate prices the arithmetic
  Cost cost;
};

// `op` is nullptr for a copy into another layout.  The dtype of a product is the wider one of its
// first two operands where it has both (packed attention has one), of all else the first float
// result's.
Work WorkOf(const OpDef* op, const OpCall& call, const Cost& cost);

enum class Bound : uint8_t { kCompute, kMemory, kLatency };
const char* BoundName(Bound bound);

struct TimeEstimate {
  double modelled_s = 0;             // by the device's rates
  std::optional<double> measured_s;  // of this kernel on this machine; none: it was not timed
  Bound bound = Bound::kLatency;

  double seconds() const { return measured_s.value_or(modelled_s); }
};

// Numbers of a device that do not depend on the node.
struct DeviceFacts {
  std::string name;  // "AMD EPYC (2 threads)"
  int threads = 1;
  double launch_s = 0;               // of one node; a part of its estimate
  double memory_bytes_per_s = 0;     // behind all caches
  double pointwise_flops_per_s = 0;  // of pointwise loops, whose bytes are in the caches
  int64_t core_cache_bytes = 0;      // of one core
  int64_t last_cache_bytes = 0;      // shared by all
  InterOpCosts inter_op;
  int64_t runtime_bytes = 0;  // of a process, beyond what is planned
  int64_t bytes_per_kernel = 0;
};

class CostModel {
 public:
  virtual ~CostModel() = default;
  virtual const DeviceFacts& facts() const = 0;
  // Kernels run on all threads, or on one (KernelChoice::one_thread).
  virtual TimeEstimate Estimate(const Work& work, const KernelChoice& choice) const = 0;
  // Seconds if all bytes were in the fastest memory.
  virtual double CachedSeconds(const Work& work, const KernelChoice& choice) const = 0;
  // Bandwidth of a node that touches `bytes`.
  virtual double BytesPerS(int64_t bytes) const = 0;

  double Seconds(const Work& work, const KernelChoice& choice) const {
    return Estimate(work, choice).seconds();
  }
  // Seconds of a copy from one layout into another.
  double CopySeconds(const TensorType& type, const KernelChoice& reorder) const;
};

}  // namespace ridge
