// Counters by NVML: what the library tells, and that what it does not tell is no failure.
#include "ridge/backend/cuda/nvml.h"

#include <dlfcn.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "ridge/core/test_folder.h"
#include "tests/fake_cuda/test_driver.h"

namespace ridge::fake_cuda {
namespace {

using cuda::Nvml;

constexpr char kFirst[] = "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0";

Settings Script(const std::string& script) { return {{"RIDGE_FAKE_NVML", script}}; }

cuda::LibrarySearch FakeFolder() { return {.before = {RIDGE_FAKE_CUDA_FOLDER}, .behind = {}}; }

std::unique_ptr<Nvml> Opened(const std::string& uuid = kFirst) {
  Result<std::unique_ptr<Nvml>> nvml = Nvml::Open(uuid, FakeFolder());
  EXPECT_TRUE(nvml.ok()) << nvml.status().message();
  return std::move(*nvml);
}

DeviceCounters ReadOnce(const std::string& script) {
  const Variables variables(Script(script));
  return Opened()->Read();
}

// GPM's samples are a tenth of a second apart at least.
DeviceCounters ReadTwice(const std::string& script) {
  const Variables variables(Script(script));
  const std::unique_ptr<Nvml> nvml = Opened();
  (void)nvml->Read();
  std::this_thread::sleep_for(std::chrono::milliseconds(110));
  return nvml->Read();
}

int Alive() {
  const auto library = cuda::FindLibrary(FakeFolder(), "libnvidia-ml.so.1");
  return reinterpret_cast<int (*)()>(::dlsym(library->handle, "ridge_fake_nvml_alive"))();
}

TEST(Nvml, TellsInOurUnits) {
  EXPECT_EQ(ReadOnce("utilization=96,memory=2048,power_mw=412500,temperature=61,clock=1980,"
                     "energy_mj=1500,corrected=4,uncorrected=1"),
            (DeviceCounters{.utilization = 0.96,
                            .power_w = 412.5,
                            .temperature_c = 61,
                            .clock_mhz = 1980,
                            .memory_bytes = 2048,
                            .thermal_limit = 0,
                            .power_limit = 0,
                            .clock_setting = 0,
                            .energy_j = 1.5,
                            .corrected_errors = 4,
                            .uncorrected_errors = 1}));
}

TEST(Nvml, TellsSharesOfTheTimeBetweenTwoReadings) {
  const DeviceCounters counters = ReadTwice("sm=91,tensor=43,dram=60");
  EXPECT_EQ(counters.sm_share, 0.91);
  EXPECT_EQ(counters.tensor_share, 0.43);
  EXPECT_EQ(counters.bandwidth_share, 0.6);
}

TEST(Nvml, TellsTheSharesThatTheGpuHas) {
  EXPECT_FALSE(ReadTwice("gpm=0").sm_share);
  EXPECT_FALSE(ReadTwice("gpm=-").sm_share);
  const DeviceCounters counters = ReadTwice("tensor=-");
  EXPECT_EQ(counters.sm_share, 0.9);
  EXPECT_FALSE(counters.tensor_share);
}

TEST(Nvml, TellsHeatPowerAndSettingsAmongWhatHoldsTheClockDown) {
  struct {
    const char* reasons;
    double thermal, power, setting;
  } const kCases[] = {{"1", 0, 0, 0},   {"2", 0, 0, 1},  {"4", 0, 1, 0},  {"8", 0, 1, 0},
                      {"16", 0, 0, 1},  {"32", 1, 0, 0}, {"64", 1, 0, 0}, {"72", 1, 0, 0},
                      {"128", 0, 1, 0}, {"38", 1, 1, 1}, {"256", 0, 0, 0}};
  for (const auto& [reasons, thermal, power, setting] : kCases) {
    const DeviceCounters counters = ReadOnce(std::string("reasons=") + reasons);
    EXPECT_EQ(counters.thermal_limit, thermal) << reasons;
    EXPECT_EQ(counters.power_limit, power) << reasons;
    EXPECT_EQ(counters.clock_setting, setting) << reasons;
  }
}

TEST(Nvml, LeavesOutEachCounterThatIsNotSupported) {
  EXPECT_EQ(ReadOnce("utilization=-,memory=-,power_mw=-,temperature=-,clock=-,reasons=-,"
                     "energy_mj=-,corrected=-,uncorrected=-"),
            DeviceCounters());
}

TEST(Nvml, AsksAgainForWhatItWasNotTold) {
  const Variables variables(Script("power_mw=-/300000"));
  const std::unique_ptr<Nvml> nvml = Opened();
  EXPECT_FALSE(nvml->Read().power_w);
  EXPECT_EQ(nvml->Read().power_w, 300);
}

TEST(Nvml, FindsTheGpuByItsUuidWhateverItsOrdinal) {
  const FakeGpu gpu(Settings{{"RIDGE_FAKE_CUDA_DEVICES", "3"}, {"CUDA_VISIBLE_DEVICES", "2,0"}});
  EXPECT_EQ(Opened(gpu.device->gpu().uuid)->Read().temperature_c, 62);
}

TEST(Nvml, FindsAMigInstanceByItsUuid) {
  const Settings slice = {{"RIDGE_FAKE_NVML", "utilization=-,power_mw=-"}};
  const Variables variables(slice);
  const DeviceCounters counters = Opened("MIG-a1a1a1a1-a1a1-a1a1-a1a1-a1a1a1a1a1a1")->Read();
  EXPECT_EQ(cuda::UntoldCounters(counters), "load, power");
  EXPECT_TRUE(counters.memory_bytes);
}

TEST(Nvml, ThatDoesNotWorkIsASentence) {
  const std::string file = RIDGE_FAKE_CUDA_FOLDER + std::string("/libnvidia-ml.so.1");
  const auto refusal = [](const std::string& uuid) {
    const Result<std::unique_ptr<Nvml>> nvml = Nvml::Open(uuid, FakeFolder());
    EXPECT_EQ(nvml.status().code(), ErrorCode::kDevice);
    return nvml.status().message();
  };
  EXPECT_EQ(refusal("GPU-bbbb"), file + " knows no GPU-bbbb");
  const Variables variables(Script("init=9"));
  EXPECT_EQ(refusal(kFirst), "nvmlInit_v2 failed: Driver Not Loaded (9)");
}

TEST(Nvml, OfAnotherLibraryIsNone) {
  const TempFolder folder;
  const std::string file = folder.path() + "/libnvidia-ml.so.1";
  std::filesystem::copy_file(RIDGE_FAKE_CUDA_FOLDER + std::string("/libnvrtc.so.13"), file);
  EXPECT_EQ(Nvml::Open(kFirst, {.before = {folder.path()}, .behind = {}}).status().message(),
            file + " is no NVML");
}

TEST(Nvml, EndsWhatItBegan) {
  {
    const std::unique_ptr<Nvml> nvml = Opened();
    EXPECT_EQ(Alive(), 3);  // itself and two samples
  }
  EXPECT_FALSE(Nvml::Open("GPU-bbbb", FakeFolder()).ok());
  EXPECT_EQ(Alive(), 0);
}

TEST(Nvml, UntoldCountersAreThoseThatEveryGpuHas) {
  EXPECT_EQ(cuda::UntoldCounters({}), "load, power, temperature, clock, memory");
  EXPECT_EQ(cuda::UntoldCounters(ReadOnce("gpm=0,uncorrected=-")), "");
}

}  // namespace
}  // namespace ridge::fake_cuda
