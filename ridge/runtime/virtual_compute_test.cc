#include "ridge/runtime/virtual_compute.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "ridge/backend/host_kernel.h"
#include "ridge/backend/reference/reference_backend.h"

namespace ridge {
namespace {

// A sleep wakes `late_s` after what was asked.
class FakeClock : public VirtualCompute::Clock {
 public:
  double Now() override { return now_s; }
  void SleepUntil(double seconds) override {
    sleeps.push_back(seconds - now_s);
    now_s = seconds + late_s;
  }

  double now_s = 1000, late_s = 0;
  std::vector<double> sleeps;
};

// Takes time that is not planned.
class Exchange : public HostKernel<Exchange> {
 public:
  Exchange(FakeClock& clock, double seconds) : clock_(clock), seconds_(seconds) {}
  Status Run(const KernelBuffers&) {
    began_s = clock_.now_s;
    clock_.now_s += seconds_;
    return Status();
  }

  double began_s = 0;

 private:
  FakeClock& clock_;
  const double seconds_;
};

class VirtualComputeTest : public testing::Test {
 protected:
  void Run(Kernel& kernel) {
    ASSERT_TRUE(kernel.Enqueue(backend_->device().stream(0), KernelBuffers()).ok());
  }
  void Last(double seconds, int times = 1) {
    const std::unique_ptr<Kernel> kernel = compute_.MakeKernel(seconds);
    for (int i = 0; i < times; ++i) Run(*kernel);
  }

  std::unique_ptr<Backend> backend_ = MakeReferenceBackend();
  FakeClock clock_;
  VirtualCompute compute_{clock_};
};

TEST_F(VirtualComputeTest, KernelsLastTogetherAsLongAsTheyArePlanned) {
  compute_.Restart();
  Last(3e-6, 1000);
  Last(5e-3);
  compute_.Settle();
  EXPECT_NEAR(clock_.now_s, 1000.008, 1e-9);
}

TEST_F(VirtualComputeTest, ShortKernelsAreSleptTogether) {
  compute_.Restart();
  Last(3e-6, 1000);
  EXPECT_LE(clock_.sleeps.size(), 15u);
  for (const double slept_s : clock_.sleeps) EXPECT_GE(slept_s, 200e-6 - 1e-9);
}

TEST_F(VirtualComputeTest, SleepsThatEndLateLengthenNothing) {
  clock_.late_s = 90e-6;
  compute_.Restart();
  Last(250e-6, 100);
  compute_.Settle();
  EXPECT_NEAR(clock_.now_s, 1000.025, 91e-6);
}

TEST_F(VirtualComputeTest, AnExchangeBeginsBehindItsKernelsAndTakesItsOwnTime) {
  auto exchange = std::make_unique<Exchange>(clock_, 4e-3);
  const Exchange& ran = *exchange;
  const std::unique_ptr<Kernel> around = compute_.Around(std::move(exchange));
  compute_.Restart();
  Last(50e-6);
  Run(*around);
  EXPECT_NEAR(ran.began_s, 1000.00005, 1e-9);
  Last(2e-3);
  compute_.Settle();
  EXPECT_NEAR(clock_.now_s, 1000.00605, 1e-9);
}

TEST_F(VirtualComputeTest, TimeBetweenStepsIsNotMadeUp) {
  compute_.Restart();
  Last(1e-3);
  compute_.Settle();
  clock_.now_s += 5;
  compute_.Restart();
  Last(1e-3);
  compute_.Settle();
  EXPECT_NEAR(clock_.now_s, 1005.002, 1e-9);
}

TEST(VirtualComputeEnvironmentTest, AnotherValueThanVirtualIsRefused) {
  unsetenv("RIDGE_TEST_COMPUTE");
  EXPECT_FALSE(*VirtualCompute::Asked());
  setenv("RIDGE_TEST_COMPUTE", "virtual", 1);
  EXPECT_TRUE(*VirtualCompute::Asked());
  setenv("RIDGE_TEST_COMPUTE", "yes", 1);
  EXPECT_EQ(VirtualCompute::Asked().status().message(),
            "RIDGE_TEST_COMPUTE is 'yes'; it must be virtual, or not set");
  unsetenv("RIDGE_TEST_COMPUTE");
}

}  // namespace
}  // namespace ridge
