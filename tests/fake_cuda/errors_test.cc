// Errors: each call fails in turn; errors stay, and nothing is left alive.
#include <cstring>

#include "ridge/backend/cuda/cuda_device.h"
#include "tests/fake_cuda/test_driver.h"

namespace ridge::fake_cuda {
namespace {

using cuda::CudaDevice;
using cuda::DriverCode;

// Everything that the device does.
Status Everything() {
  RIDGE_ASSIGN_OR_RETURN(const cuda::Driver driver, LoadFake());
  RIDGE_ASSIGN_OR_RETURN(const auto device, CudaDevice::Open(driver, 0));
  RIDGE_ASSIGN_OR_RETURN(const auto arena, device->Allocate(2 * kBytes));
  std::unique_ptr<Memory> split;
  if (device->gpu().maps_host_memory) {
    RIDGE_ASSIGN_OR_RETURN(split,
                           device->AllocateWithHost(4 << 20, {.bytes = 2 << 20, .followed = true}));
  }
  RIDGE_ASSIGN_OR_RETURN(const auto staging, device->AllocateStaging(kBytes));
  const auto copied = device->MakeEvent();
  std::memset(staging->data(), 1, kBytes);
  device->copy_stream().Upload(arena->data(), staging->data(), kBytes);
  device->copy_stream().Copy(arena->data() + kBytes, arena->data(), kBytes);
  device->copy_stream().Record(*copied);
  Stream& stream = device->stream(0);
  stream.Wait(*copied);
  stream.Clear(arena->data(), kBytes);
  stream.Download(staging->data(), arena->data() + kBytes, kBytes);
  RIDGE_RETURN_IF_ERROR(stream.Synchronize());
  (void)copied->seconds();
  RIDGE_RETURN_IF_ERROR(device->FreeBytes().status());
  return stream.Synchronize();
}

// What gives something back has nobody to tell.
bool IsSilent(const std::string& function) {
  for (const char* silent :
       {"cuDevicePrimaryCtxRelease", "cuMemAddressFree", "cuMemUnmap", "cuMemFree", "cuMemFreeHost",
        "cuStreamDestroy", "cuEventDestroy", "cuCtxSynchronize", "cuGetErrorName"}) {
    if (function == silent) return true;
  }
  return false;
}

struct Calls {
  std::string function;
  int64_t count;
};

// Of a run of Everything() in which nothing fails.
std::vector<Calls> CallsOfEverything() {
  const Result<cuda::Driver> driver = LoadFake();
  EXPECT_TRUE(driver.ok());
  const Hooks hooks(*driver);
  const Status status = Everything();
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(hooks.alive(), 0);
  std::vector<Calls> calls;
#define RIDGE_TEST_CALLS(name, symbol, parameters) \
  calls.push_back({"cu" #name, hooks.calls("cu" #name)});
  RIDGE_CUDA_FUNCTIONS(RIDGE_TEST_CALLS)
#undef RIDGE_TEST_CALLS
  return calls;
}

// The fake counts a call also where it only gives back.
void ExpectFailure(const std::string& function, int64_t call, int code) {
  const std::string failure = function + ":" + std::to_string(call) + ":" + std::to_string(code);
  const Variables variables(
      Settings{{"RIDGE_FAKE_CUDA_FAIL", failure}, {"RIDGE_FAKE_CUDA_DELAY_US", "0"}});
  const Status status = Everything();
  if (status.ok()) {
    // Only where the device is being closed, and of a question that older drivers do not know.
    const bool is_unknown = function == "cuDeviceGetAttribute" && code == 1;
    EXPECT_TRUE(IsSilent(function) || function == "cuCtxSetCurrent" || is_unknown) << failure;
  } else {
    EXPECT_NE(status.message().find(function), std::string::npos)
        << failure << ": " << status.message();
  }
}

// How many failed.
int FailEachCall() {
  const Hooks hooks(*LoadFake());
  int failures = 0;
  for (const auto& [function, count] : CallsOfEverything()) {
    for (int64_t call = 1; call <= count; ++call) {
      for (const int code : {1, 2, 700}) {
        ExpectFailure(function, call, code);
        EXPECT_EQ(hooks.alive(), 0) << function << ":" << call << ":" << code;
        ++failures;
      }
    }
  }
  return failures;
}

TEST(CudaErrors, EveryCallThatFailsLeavesAStatusAndNothingAlive) {
  const Variables quick(Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "0"}});
  EXPECT_GT(FailEachCall(), 200);
}

TEST(CudaErrors, EveryCallThatFailsDoesSoWithoutVirtualMemoryManagement) {
  const Variables quick(Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "0"}, {"RIDGE_FAKE_CUDA_MAPS", "0"}});
  EXPECT_GT(FailEachCall(), 180);
}

TEST(CudaErrors, WorkAfterAnErrorDoesNotRun) {
  FakeGpu gpu(Settings{{"RIDGE_FAKE_CUDA_FAIL", "cuMemcpyHtoDAsync:1:1"}});  // CUDA forgets it
  const auto arena = Allocated(*gpu.device, kBytes);
  const std::vector<int64_t> from = Numbers(1);
  std::vector<int64_t> to(kCount, 5);
  Stream& stream = gpu.device->stream(0);
  stream.Upload(arena->data(), from.data(), kBytes);
  stream.Download(to.data(), arena->data(), kBytes);
  for (int again = 0; again < 3; ++again) {
    EXPECT_EQ(stream.Synchronize().message(),
              "cuda:0: cuMemcpyHtoDAsync failed: CUDA_ERROR_INVALID_VALUE (1)");
  }
  EXPECT_EQ(to, std::vector<int64_t>(kCount, 5));
}

DriverCode Fail(void*) { return DriverCode::kLaunchFailed; }

TEST(CudaErrors, OfAKernelStayOnEveryStream) {
  FakeGpu gpu;
  auto& stream = static_cast<cuda::CudaStream&>(gpu.device->stream(0));
  ASSERT_EQ(gpu.hooks.launch(stream.handle(), Fail, nullptr, [](void*) {}), DriverCode::kSuccess);
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(stream.Synchronize().message(),
              "cuda:0: cuStreamSynchronize failed: CUDA_ERROR_LAUNCH_FAILED (719)");
  }
  EXPECT_FALSE(gpu.device->communication_stream().Synchronize().ok());
  EXPECT_FALSE(gpu.device->Allocate(kBytes).ok());
}

}  // namespace
}  // namespace ridge::fake_cuda
