#include "ridge/runtime/rank_kernels.h"

#include <fmt/format.h>

#include "ridge/backend/host_kernel.h"
#include "ridge/core/process.h"

namespace ridge {
namespace {

class NobodyElse : public HostKernel<NobodyElse> {
 public:
  explicit NobodyElse(int64_t ranks) : ranks_(ranks) {}
  Status Run(const KernelBuffers&) {
    return Status(ErrorCode::kUnavailable,
                  fmt::format("a step of {} ranks runs on all of them together", ranks_));
  }

 private:
  const int64_t ranks_;
};

class TimedKernel : public HostKernel<TimedKernel> {
 public:
  TimedKernel(std::unique_ptr<Kernel> kernel, Backend& backend, double& spent_s)
      : kernel_(std::move(kernel)), stream_(backend.device().stream(0)), spent_s_(spent_s) {}

  Status Run(const KernelBuffers& buffers) {
    RIDGE_RETURN_IF_ERROR(stream_.Synchronize());  // what comes before is no exchange
    const double begin_s = MonotonicSeconds();
    RIDGE_RETURN_IF_ERROR(kernel_->Enqueue(stream_, buffers));
    spent_s_ += MonotonicSeconds() - begin_s;
    return Status();
  }

 private:
  const std::unique_ptr<Kernel> kernel_;
  Stream& stream_;
  double& spent_s_;
};

}  // namespace

std::unique_ptr<Kernel> MakeNobodyElse(int64_t ranks) {
  return std::make_unique<NobodyElse>(ranks);
}

std::unique_ptr<Kernel> Timed(std::unique_ptr<Kernel> kernel, Backend& backend, double& spent_s) {
  return std::make_unique<TimedKernel>(std::move(kernel), backend, spent_s);
}

}  // namespace ridge
