// Errors: each call fails in turn; errors stay, and nothing is left alive.
#include <cstring>
#include <set>

#include "ridge/backend/cuda/cuda_device.h"
#include "ridge/backend/cuda/cuda_kernel.h"
#include "ridge/backend/cuda/nvrtc.h"
#include "tests/fake_cuda/test_driver.h"

namespace ridge::fake_cuda {
namespace {

using cuda::CudaDevice;
using cuda::DriverCode;

// A kernel that the fake compiler made once.
Result<std::string> Doubles() {
  static const Result<std::string> code = []() -> Result<std::string> {
    RIDGE_ASSIGN_OR_RETURN(const cuda::Nvrtc nvrtc,
                           cuda::Nvrtc::Open({{RIDGE_FAKE_CUDA_FOLDER}, {}}));
    const std::string text =
        "RIDGE_KERNEL void doubles(const float* x, float* y) { y[0] = 2 * x[0]; }";
    RIDGE_ASSIGN_OR_RETURN(const cuda::Cubin cubin,
                           nvrtc.Compile(std::string(cuda::Prelude()) + text, "sm_90"));
    return cubin.code;
  }();
  return code;
}

Status Move(CudaDevice& device, std::byte* at) {
  RIDGE_ASSIGN_OR_RETURN(const auto staging, device.AllocateStaging(kBytes));
  const auto copied = device.MakeEvent();
  std::memset(staging->data(), 1, kBytes);
  device.stream(1).Upload(at, staging->data(), kBytes);
  device.stream(1).Copy(at + kBytes, at, kBytes);
  device.stream(1).Record(*copied);
  Stream& stream = device.stream(0);
  stream.Wait(*copied);
  stream.Clear(at, kBytes);
  stream.Download(staging->data(), at + kBytes, kBytes);
  RIDGE_RETURN_IF_ERROR(stream.Synchronize());
  (void)copied->seconds();
  return device.FreeBytes().status();
}

// A kernel and what may run beside it, recorded and played twice.
Status LaunchAndPlay(CudaDevice& device, std::byte* at) {
  RIDGE_ASSIGN_OR_RETURN(const std::string code, Doubles());
  RIDGE_ASSIGN_OR_RETURN(std::shared_ptr<cuda::CudaModule> module,
                         cuda::CudaModule::Load(device.context(), code));
  const cuda::Launch launch{.function = "doubles",
                            .threads = 32,
                            .arguments = {cuda::Argument::Input(0), cuda::Argument::Output(0)}};
  RIDGE_ASSIGN_OR_RETURN(const auto kernel,
                         cuda::CudaKernel::Create(device.context(), std::move(module), {launch}));
  const void* const input = at;
  void* const output = at + kBytes;
  Stream& stream = device.stream(0);
  stream.BeginRecording();
  const int begun = stream.Mark();
  const Status launched = kernel->Enqueue(stream, {{&input, 1}, {&output, 1}, nullptr});
  stream.RunBehind(std::vector<int>{begun});
  stream.Clear(at + kBytes / 2, 8);
  RIDGE_ASSIGN_OR_RETURN(const auto recording, stream.EndRecording());
  for (int play = 0; play < 2; ++play) stream.Play(*recording);
  RIDGE_RETURN_IF_ERROR(launched);
  return stream.Synchronize();
}

// Everything that the device does.
Status Everything() {
  RIDGE_ASSIGN_OR_RETURN(const cuda::Driver driver, LoadFake());
  EXPECT_FALSE(driver.Check(DriverCode::kInvalidValue, "").ok());  // asks for its name
  RIDGE_ASSIGN_OR_RETURN(const auto device, CudaDevice::Open(driver, 0));
  RIDGE_ASSIGN_OR_RETURN(const auto arena, device->Allocate(2 * kBytes));
  std::unique_ptr<Memory> split;
  if (device->gpu().maps_host_memory) {
    RIDGE_ASSIGN_OR_RETURN(split,
                           device->AllocateWithHost(4 << 20, {.bytes = 2 << 20, .followed = true}));
  }
  RIDGE_RETURN_IF_ERROR(Move(*device, arena->data()));
  RIDGE_RETURN_IF_ERROR(LaunchAndPlay(*device, arena->data()));
  return device->stream(0).Synchronize();
}

// A function of the driver's table.
struct Calls {
  std::string function;  // as the fake counts it: "cuGraphInstantiateWithFlags"
  std::string said;      // in a Status: "cuGraphInstantiate"
  int64_t count;
};

// What gives something back, or names an error, has nobody to tell.
bool IsSilent(const std::string& function) {
  for (const char* silent :
       {"cuDevicePrimaryCtxRelease", "cuMemAddressFree", "cuMemUnmap", "cuMemFree", "cuMemFreeHost",
        "cuStreamDestroy", "cuEventDestroy", "cuCtxSynchronize", "cuGetErrorName", "cuModuleUnload",
        "cuGraphDestroy", "cuGraphExecDestroy"}) {
    if (function == silent) return true;
  }
  return false;
}

// "cuMemAlloc" of "cuMemAlloc_v2".
std::string WithoutVersion(const std::string& symbol) {
  return symbol.substr(0, symbol.find("_v"));
}

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
  calls.push_back({WithoutVersion(#symbol), "cu" #name, 0});
  RIDGE_CUDA_FUNCTIONS(RIDGE_TEST_CALLS)
#undef RIDGE_TEST_CALLS
  for (Calls& one : calls) one.count = hooks.calls(one.function.c_str());
  return calls;
}

// An error that stays is told by the next call that tells anything.  The loader has words of its
// own for a driver that does not know its version.
void ExpectNamed(const Calls& calls, const Status& status, const std::string& failure, int code) {
  const std::string &text = status.message(), &function = calls.function;
  const bool no_memory = code == 2 && function != "cuDriverGetVersion";
  EXPECT_EQ(status.code(), no_memory ? ErrorCode::kDeviceMemory : ErrorCode::kDevice) << failure;
  EXPECT_NE(text.find(std::to_string(code)), std::string::npos) << failure << ": " << text;
  EXPECT_TRUE(IsSilent(function) || text.find(calls.said) != std::string::npos)
      << failure << ": " << text;
}

void ExpectFailure(const Calls& calls, int64_t call, int code) {
  const std::string failure =
      calls.function + ":" + std::to_string(call) + ":" + std::to_string(code);
  const Variables variables(
      Settings{{"RIDGE_FAKE_CUDA_FAIL", failure}, {"RIDGE_FAKE_CUDA_DELAY_US", "0"}});
  const Status status = Everything();
  if (!status.ok()) return ExpectNamed(calls, status, failure, code);
  // Only where the device is being closed, and of a question that older drivers do not know.
  const bool is_unknown = calls.function == "cuDeviceGetAttribute" && code == 1;
  EXPECT_TRUE(IsSilent(calls.function) || calls.function == "cuCtxSetCurrent" || is_unknown)
      << failure;
}

// An argument, memory, a GPU that is broken, code that is, and what nobody knows.
constexpr int kCodes[] = {1, 2, 214, 700, 702, 719, 999};

// How many failed.
int FailEachCall() {
  const Hooks hooks(*LoadFake());
  int failures = 0;
  for (const Calls& calls : CallsOfEverything()) {
    for (int64_t call = 1; call <= calls.count; ++call) {
      for (const int code : kCodes) {
        ExpectFailure(calls, call, code);
        EXPECT_EQ(hooks.alive(), 0) << calls.function << ":" << call << ":" << code;
        ++failures;
      }
    }
  }
  return failures;
}

TEST(CudaErrors, EveryCallThatFailsLeavesAStatusAndNothingAlive) {
  const Variables quick(Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "0"}});
  EXPECT_GT(FailEachCall(), 700);
}

TEST(CudaErrors, EveryCallThatFailsDoesSoWithoutVirtualMemoryManagement) {
  const Variables quick(Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "0"}, {"RIDGE_FAKE_CUDA_MAPS", "0"}});
  EXPECT_GT(FailEachCall(), 600);
}

// So that a new one fails in turn, too.
TEST(CudaErrors, EveryFunctionOfTheTableIsAmongTheCalls) {
  std::set<std::string> not_called;
  for (const Calls& calls : CallsOfEverything()) {
    if (calls.count == 0) not_called.insert(calls.function);
  }
  const Variables without(Settings{{"RIDGE_FAKE_CUDA_MAPS", "0"}});
  for (const Calls& calls : CallsOfEverything()) {
    if (calls.count > 0) not_called.erase(calls.function);
  }
  EXPECT_EQ(not_called, std::set<std::string>());
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
  EXPECT_FALSE(gpu.device->stream(1).Synchronize().ok());
  EXPECT_FALSE(gpu.device->Allocate(kBytes).ok());
}

TEST(CudaErrors, OfAKernelStayOnTheGpuThatRanIt) {
  FakeGpu gpu(Settings{{"RIDGE_FAKE_CUDA_DEVICES", "2"}});
  auto other = cuda::CudaDevice::Open(gpu.driver, /*device=*/1);
  ASSERT_TRUE(other.ok()) << other.status().message();
  auto& stream = static_cast<cuda::CudaStream&>((*other)->stream(0));
  ASSERT_EQ(gpu.hooks.launch(stream.handle(), Fail, nullptr, [](void*) {}), DriverCode::kSuccess);
  EXPECT_FALSE(stream.Synchronize().ok());
  EXPECT_TRUE(gpu.device->stream(0).Synchronize().ok());
  EXPECT_TRUE(gpu.device->Allocate(kBytes).ok());
}

}  // namespace
}  // namespace ridge::fake_cuda
