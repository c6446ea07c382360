// Backend: the interface of a device: answers to the planner, and kernels.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "ridge/core/device_profile.h"
#include "ridge/lower/kernel_query.h"

namespace ridge {

// Pointers of one execution, fixed by the plan.  Absent inputs are nullptr; workspace has
// KernelChoice::workspace_bytes.
struct KernelBuffers {
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
  void* workspace = nullptr;
};

// A node made ready for one device.  Run() allocates nothing of ours and throws only Bug.
// Not thread-safe: one Run() at a time.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual Status Run(const KernelBuffers& buffers) = 0;
};

class Backend : public KernelQuery {
 public:
  virtual const std::string& name() const = 0;  // "cpu", "reference"
  virtual int threads() const = 0;
  // Whether the device has instructions for products of this type, which are no slower than f32.
  virtual bool Multiplies(DType operands) const = 0;
  // REQUIRES: `choice` came from Offers() or Reorder() of a backend of this kind.
  virtual Result<std::unique_ptr<Kernel>> Create(const OpDef& op, const OpCall& call,
                                                 const KernelChoice& choice) = 0;
  // The kernel behind Reorder().
  virtual Result<std::unique_ptr<Kernel>> CreateReorder(const TensorType& type,
                                                        const KernelChoice& choice) = 0;
};

}  // namespace ridge
