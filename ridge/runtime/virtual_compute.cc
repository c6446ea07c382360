#include "ridge/runtime/virtual_compute.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <time.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "ridge/backend/host_kernel.h"
#include "ridge/core/process.h"

namespace ridge {
namespace {

class MachineClock : public VirtualCompute::Clock {
 public:
  double Now() override { return MonotonicSeconds(); }

  void SleepUntil(double seconds) override {
    // The system may wake a thread 50 us later than asked, unless it says otherwise.
    thread_local const int exact = prctl(PR_SET_TIMERSLACK, 1);
    (void)exact;
    const double whole = std::floor(seconds);
    const timespec end = {static_cast<time_t>(whole), static_cast<long>(1e9 * (seconds - whole))};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr) == EINTR) {
    }
  }
};

MachineClock& TheMachineClock() {
  static MachineClock clock;
  return clock;
}

}  // namespace

class VirtualCompute::Sleeper : public HostKernel<Sleeper> {
 public:
  Sleeper(VirtualCompute& compute, const double& seconds) : compute_(compute), seconds_(seconds) {}
  Status Run(const KernelBuffers&) {
    compute_.Last(seconds_);
    return Status();
  }

 private:
  VirtualCompute& compute_;
  const double& seconds_;
};

class VirtualCompute::Real : public Kernel {
 public:
  Real(VirtualCompute& compute, std::unique_ptr<Kernel> kernel)
      : compute_(compute), kernel_(std::move(kernel)) {}
  Status Enqueue(Stream& stream, const KernelBuffers& buffers) override {
    compute_.Settle();
    const Status status = kernel_->Enqueue(stream, buffers);
    compute_.CatchUp();
    return status;
  }

 private:
  VirtualCompute& compute_;
  const std::unique_ptr<Kernel> kernel_;
};

VirtualCompute::VirtualCompute() : VirtualCompute(TheMachineClock()) {}

Result<bool> VirtualCompute::Asked() {
  const char* given = std::getenv("RIDGE_TEST_COMPUTE");
  const std::string_view value = given == nullptr ? "" : given;
  if (value.empty()) return false;
  if (value == "virtual") return true;
  return InvalidArgument(
      fmt::format("RIDGE_TEST_COMPUTE is '{}'; it must be virtual, or not set", value));
}

std::unique_ptr<Kernel> VirtualCompute::MakeKernel(const double& seconds) {
  return std::make_unique<Sleeper>(*this, seconds);
}

std::unique_ptr<Kernel> VirtualCompute::Around(std::unique_ptr<Kernel> kernel) {
  return std::make_unique<Real>(*this, std::move(kernel));
}

void VirtualCompute::Restart() { until_s_ = clock_.Now(); }

void VirtualCompute::Settle() {
  if (clock_.Now() < until_s_) clock_.SleepUntil(until_s_);
}

void VirtualCompute::Last(double seconds) {
  double until_s = 0;
  {
    const std::lock_guard lock(mutex_);
    until_s = until_s_ += seconds;
  }
  if (until_s - clock_.Now() >= kLeastSleep_s) clock_.SleepUntil(until_s);
}

// Time that a sleep took too much is made up by the next ones; what an exchange took is not.
void VirtualCompute::CatchUp() {
  const double now_s = clock_.Now();
  if (now_s - until_s_ >= kLeastSleep_s) until_s_ = now_s;
}

}  // namespace ridge
