#include "ridge/backend/cuda/waiting_kernel.h"

#include <utility>

#include "ridge/backend/cuda/driver.h"

namespace ridge::cuda {
namespace {

constexpr char kHintNamed[] = "compute-sanitizer names the kernel and the address";

// The node is named already.
std::string WithoutHintSync(std::string message) {
  if (message.ends_with(kHintSync))
    message.replace(message.size() - std::string_view(kHintSync).size(), std::string::npos,
                    kHintNamed);
  return message;
}

class WaitingKernel : public Kernel {
 public:
  WaitingKernel(std::unique_ptr<Kernel> kernel, std::string where)
      : kernel_(std::move(kernel)), where_(std::move(where)) {}

  Status Enqueue(Stream& stream, const KernelBuffers& buffers) override {
    Status status = kernel_->Enqueue(stream, buffers);
    if (status.ok()) status = stream.Synchronize();
    if (status.ok()) return status;
    return Status(status.code(), where_ + ": " + WithoutHintSync(status.message()));
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
