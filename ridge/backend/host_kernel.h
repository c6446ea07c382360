// HostKernel: base of kernels that run on the calling thread and its team, and are done on return.
//
//   class ReluKernel : public HostKernel<ReluKernel> {
//    public:
//     Status Run(const KernelBuffers& buffers);
//   };
#pragma once
#include "ridge/backend/backend.h"

namespace ridge {

// K::Run() is no virtual function: a node costs one indirect call.
template <typename K>
class HostKernel : public Kernel {
 public:
  Status Enqueue(Stream&, const KernelBuffers& buffers) final {
    return static_cast<K*>(this)->Run(buffers);
  }
};

}  // namespace ridge
