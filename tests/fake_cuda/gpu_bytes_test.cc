// What a GPU has in use by NVML before CUDA is initialized, and who else uses it.
#include "ridge/backend/cuda/gpu_bytes.h"

#include "tests/fake_cuda/test_driver.h"

namespace ridge::fake_cuda {
namespace {

using cuda::GpuBytesLog;

constexpr int64_t kMiB = int64_t{1} << 20;
const Settings kUse = {{"RIDGE_FAKE_CUDA_OTHERS_BYTES", "3145728"},
                       {"RIDGE_FAKE_CUDA_CONTEXT_BYTES", "8388608"}};

cuda::LibrarySearch FakeFolder() { return {.before = {RIDGE_FAKE_CUDA_FOLDER}, .behind = {}}; }

int64_t UsedBytes(cuda::CudaDevice& device) { return device.used_bytes().value_or(-1); }

// A log that was begun before the GPU was opened, as ridge does it.
struct LoggedGpu {
  explicit LoggedGpu(Settings settings, const cuda::LibrarySearch& search = FakeFolder())
      : variables(std::move(settings)),
        driver(*LoadFake()),
        log(GpuBytesLog::Begin(search)),
        device(std::move(*cuda::CudaDevice::Open(driver, 0))) {
    log->ContextIsMade(0, device->gpu().uuid, UsedBytes(*device));
  }
  const DeviceBytes& bytes() const { return log->bytes(); }
  void End(int64_t peak_bytes) { log->End(UsedBytes(*device), peak_bytes); }

  const Variables variables;
  const cuda::Driver driver;
  const std::unique_ptr<GpuBytesLog> log;
  const std::unique_ptr<cuda::CudaDevice> device;
};

Settings With(const std::string& script, Settings settings = kUse) {
  settings["RIDGE_FAKE_NVML"] = script;
  return settings;
}

TEST(GpuBytesLog, TellsTheContextFromWhatWasInUseBefore) {
  const LoggedGpu gpu(kUse);
  EXPECT_EQ(gpu.bytes().device, "cuda:0");
  EXPECT_EQ(gpu.bytes().used.before, 3 * kMiB);
  EXPECT_EQ(gpu.bytes().used.context, 11 * kMiB);
  EXPECT_EQ(gpu.bytes().measured().context, 8 * kMiB);
  EXPECT_EQ(gpu.bytes().no_before, "");
}

// NVML may count what the driver does not: only its difference is taken.
TEST(GpuBytesLog, TakesTheDifferenceOfNvmlAlone) {
  const LoggedGpu gpu(With("used=1003145728/1011534336"));
  EXPECT_EQ(gpu.bytes().used.before, 3 * kMiB);
}

TEST(GpuBytesLog, FindsTheGpuThatVisibleDevicesMean) {
  Settings settings = With("gpus=3");
  settings["RIDGE_FAKE_CUDA_DEVICES"] = "3";
  settings["CUDA_VISIBLE_DEVICES"] = "2,0";
  EXPECT_EQ(LoggedGpu(settings).bytes().used.before, 3 * kMiB);
  settings["RIDGE_FAKE_NVML"] = "gpus=2";
  EXPECT_EQ(LoggedGpu(settings).bytes().no_before,
            "NVML does not tell them of GPU-a2a2a2a2-a2a2-a2a2-a2a2-a2a2a2a2a2a2");
}

TEST(GpuBytesLog, WithoutTheLibraryBeginsWithTheContext) {
  const LoggedGpu gpu(With("init=9"));
  EXPECT_FALSE(gpu.bytes().used.before);
  EXPECT_EQ(gpu.bytes().no_before, "nvmlInit_v2 failed: Driver Not Loaded (9)");
  EXPECT_EQ(gpu.bytes().measured().context, 11 * kMiB);
}

TEST(GpuBytesLog, WithoutTheFunctionBeginsWithTheContext) {
  const LoggedGpu gpu(With("used=-"));
  EXPECT_FALSE(gpu.bytes().used.before);
  EXPECT_EQ(gpu.bytes().no_before,
            "NVML does not tell them of GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0");
}

TEST(GpuBytesLog, CountsOtherProcessesAndNotItself) {
  struct {
    const char* script;
    OtherProcesses others;
  } const kCases[] = {
      {"", {0, 0}},
      {"own=4242", {0, 0}},  // of a container
      {"processes=2", {2, 2 * kMiB}},
      {"processes=2,own=4242", {2, 2 * kMiB}},
      {"processes=40", {40, 40 * kMiB}},  // more than there is room for at first
      {"processes=2,process_bytes=-", {2, std::nullopt}},
      {"processes=1/0", {1, kMiB}},    // gone when the context is made
      {"processes=0/0/1", {1, kMiB}},  // comes later
      {"processes=-", {0, 0}},
  };
  for (const auto& [script, others] : kCases) {
    LoggedGpu gpu(With(script));
    gpu.End(/*peak_bytes=*/11 * kMiB);
    EXPECT_EQ(gpu.bytes().others, others) << script << ": " << gpu.bytes().others.count << " "
                                          << gpu.bytes().others.bytes.value_or(-1);
  }
}

// The stages of a run by hand.
void ReadStages(LoggedGpu& gpu) {
  DeviceReadings& use = gpu.log->bytes().used;
  use.arena = use.kernels = use.graphs = UsedBytes(*gpu.device);
}

TEST(GpuBytesLog, ALeakIsWhatIsNotGivenBack) {
  LoggedGpu gpu(kUse);
  const auto arena = Allocated(*gpu.device, 4 * kMiB);
  ReadStages(gpu);
  gpu.End(15 * kMiB);
  EXPECT_EQ(gpu.bytes().measured().arena, 4 * kMiB);
  EXPECT_EQ(gpu.bytes().verdict(), BytesVerdict::kProven);
  auto leaked = Allocated(*gpu.device, 2 * kMiB);
  gpu.End(15 * kMiB);
  EXPECT_EQ(gpu.bytes().growth(), 2 * kMiB);
  EXPECT_EQ(gpu.bytes().verdict(), BytesVerdict::kLeak);
  leaked.reset();
  gpu.End(15 * kMiB);
  EXPECT_EQ(gpu.bytes().verdict(), BytesVerdict::kProven);
}

}  // namespace
}  // namespace ridge::fake_cuda
