// Backend: the interface of a kernel library on a device: answers to the planner, and kernels.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "ridge/backend/device.h"
#include "ridge/core/device_profile.h"
#include "ridge/lower/kernel_query.h"

namespace ridge {

// Device addresses of one execution, fixed by the plan.  Absent inputs are nullptr; workspace has
// KernelChoice::workspace_bytes.
struct KernelBuffers {
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
  void* workspace = nullptr;
};

// A node made ready for one device.  Enqueue() allocates nothing of ours and throws only Bug.
// Not thread-safe: one Enqueue() at a time, and one stream.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // The addresses are copied; what they point to is used when the stream comes to it.  Fails only
  // for what is known at once: see Stream::Synchronize().
  virtual Status Enqueue(Stream& stream, const KernelBuffers& buffers) = 0;
};

// What Create() is asked for.
struct KernelRequest {
  const OpDef* op;
  const OpCall* call;
  const KernelChoice* choice;
};

class Backend : public KernelQuery {
 public:
  virtual const std::string& name() const = 0;  // "cpu", "reference"
  virtual int threads() const = 0;
  // Where its kernels run.
  virtual Device& device() = 0;
  MemorySpace memory() final { return device().memory_space(); }
  Backend* host() final { return host_; }
  // `host` outlives it, and runs on the host.
  void SetHost(Backend& host) { host_ = &host; }
  // REQUIRES: `choice` came from Candidates() or Reorder() of a backend of this kind.
  virtual Result<std::unique_ptr<Kernel>> Create(const OpDef& op, const OpCall& call,
                                                 const KernelChoice& choice) = 0;
  // Makes ready what Create() needs for all of these at once, by all cores.  Create() reports what
  // fails.
  virtual void Prepare(std::span<const KernelRequest>) {}
  // The kernel behind Reorder().
  virtual Result<std::unique_ptr<Kernel>> CreateReorder(const TensorType& type,
                                                        const KernelChoice& choice) = 0;
  // A kernel of a node that Create() does not make, as those that it makes: with errors that name
  // `where` if they do.
  virtual std::unique_ptr<Kernel> Watch(std::unique_ptr<Kernel> kernel, const std::string& where) {
    (void)where;
    return kernel;
  }

 private:
  Backend* host_ = nullptr;
};

}  // namespace ridge
