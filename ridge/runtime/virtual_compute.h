// VirtualCompute: kernels that last as long as the plan says, and compute nothing.
//
// Ranks that sleep need no cores, and exchange for real: so a machine of a few cores shows how long
// a step of many ranks takes, beside its plan.  What such a step computes means nothing.
#pragma once
#include <memory>
#include <mutex>

#include "ridge/backend/backend.h"

namespace ridge {

class VirtualCompute {
 public:
  class Clock {
   public:
    virtual ~Clock() = default;
    virtual double Now() = 0;  // seconds
    virtual void SleepUntil(double seconds) = 0;
  };
  VirtualCompute();  // by the machine's steady clock
  // `clock` outlives it.
  explicit VirtualCompute(Clock& clock) : clock_(clock) {}

  // Whether RIDGE_TEST_COMPUTE=virtual is set.  Fails with kInvalidArgument for another value.
  static Result<bool> Asked();

  // In place of a kernel: lasts `seconds`, which outlives it and is read at each run.
  std::unique_ptr<Kernel> MakeKernel(const double& seconds);
  // `kernel` itself, behind what came before it, for as long as it takes.
  std::unique_ptr<Kernel> Around(std::unique_ptr<Kernel> kernel);

  // Kernels last from now on.
  void Restart();
  // Returns when all kernels have lasted.
  void Settle();

 private:
  class Sleeper;
  class Real;

  // Kernels shorter than a sleep is exact are slept together.
  static constexpr double kLeastSleep_s = 200e-6;

  void Last(double seconds);
  void CatchUp();

  Clock& clock_;
  std::mutex mutex_;  // nodes of a parallel region run at the same time
  double until_s_ = 0;
};

}  // namespace ridge
