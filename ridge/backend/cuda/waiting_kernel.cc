#include "ridge/backend/cuda/waiting_kernel.h"

namespace ridge::cuda {
namespace {

class WaitingKernel : public Kernel {
 public:
  WaitingKernel(std::unique_ptr<Kernel> kernel, std::string where)
      : kernel_(std::move(kernel)), where_(std::move(where)) {}

  Status Enqueue(Stream& stream, const KernelBuffers& buffers) override {
    Status status = kernel_->Enqueue(stream, buffers);
    if (status.ok()) status = stream.Synchronize();
    return status.ok() ? status : Status(status.code(), where_ + ": " + status.message());
  }

 private:
  const std::unique_ptr<Kernel> kernel_;
  const std::string where_;
};

}  // namespace

std::unique_ptr<Kernel> WaitForEach(std::unique_ptr<Kernel> kernel, std::string where) {
  return std::make_unique<WaitingKernel>(std::move(kernel), std::move(where));
}

}  // namespace ridge::cuda
