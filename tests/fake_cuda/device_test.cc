// CudaDevice on the fake driver: memory to the byte, guards, order, and which GPU it is.
#include <cmath>
#include <cstring>
#include <thread>

#include "ridge/backend/cuda/cuda_device.h"
#include "tests/fake_cuda/test_driver.h"

namespace ridge::fake_cuda {
namespace {

using cuda::CudaDevice;
using cuda::DriverCode;

constexpr int64_t kMiB = int64_t{1} << 20;
int64_t Free(CudaDevice& device) {
  const Result<int64_t> free = device.FreeBytes();
  EXPECT_TRUE(free.ok()) << free.status().message();
  return *free;
}

// --- memory --------------------------------------------------------------------------------------

TEST(CudaMemory, AnArenaTakesItsPagesAndNothingElse) {
  FakeGpu gpu;
  EXPECT_EQ(gpu.device->memory_space().page_bytes, 2 * kMiB);
  EXPECT_EQ(gpu.device->memory_space().alignment_bytes, 256);
  const int64_t before = Free(*gpu.device);
  {
    const auto arena = Allocated(*gpu.device, 5 * kMiB);
    EXPECT_EQ(arena->bytes(), 6 * kMiB);
    EXPECT_EQ(arena->resident_bytes(), 6 * kMiB);
    EXPECT_FALSE(arena->host_visible());
    EXPECT_EQ(before - Free(*gpu.device), 6 * kMiB);
    const auto smallest = Allocated(*gpu.device, 0);
    EXPECT_EQ(before - Free(*gpu.device), 8 * kMiB);
  }
  EXPECT_EQ(Free(*gpu.device), before);
}

TEST(CudaMemory, WhatLiesOnTheHostTakesNothingOfTheGpu) {
  FakeGpu gpu;
  const int64_t before = Free(*gpu.device);
  {
    const auto arena = gpu.device->AllocateWithHost(8 * kMiB, {6 * kMiB});
    ASSERT_TRUE(arena.ok()) << arena.status().message();
    EXPECT_EQ((*arena)->bytes(), 8 * kMiB);
    EXPECT_EQ((*arena)->host_bytes(), 6 * kMiB);
    EXPECT_EQ((*arena)->resident_bytes(), 2 * kMiB);
    EXPECT_EQ(before - Free(*gpu.device), 2 * kMiB);
    std::vector<int64_t> read(kCount);
    const std::vector<int64_t> from = Numbers(3);
    std::byte* const on_host = (*arena)->data();
    std::byte* const on_gpu = on_host + 6 * kMiB;
    Stream& stream = gpu.device->stream(0);
    stream.Upload(on_host, from.data(), kBytes);
    stream.Copy(on_gpu, on_host, kBytes);
    stream.Download(read.data(), on_gpu, kBytes);
    ASSERT_TRUE(stream.Synchronize().ok());
    EXPECT_EQ(read, from);
  }
  EXPECT_EQ(Free(*gpu.device), before);
}

TEST(CudaMemory, TheHostFollowsAddressesOfItsPartWhereItIsToldTo) {
  FakeGpu gpu;
  const auto arena = gpu.device->AllocateWithHost(8 * kMiB, {.bytes = 6 * kMiB, .followed = true});
  ASSERT_TRUE(arena.ok()) << arena.status().message();
  auto* const on_host = reinterpret_cast<int64_t*>((*arena)->data());
  const std::vector<int64_t> from = Numbers(3);
  std::copy(from.begin(), from.end(), on_host);
  std::byte* const on_gpu = (*arena)->data() + 6 * kMiB;
  Stream& stream = gpu.device->stream(0);
  stream.Copy(on_gpu, on_host, kBytes);
  stream.Clear(on_host, kBytes);
  stream.Copy(on_host + kCount, on_gpu, kBytes);
  ASSERT_TRUE(stream.Synchronize().ok());
  EXPECT_EQ(std::vector<int64_t>(on_host, on_host + kCount), std::vector<int64_t>(kCount, 0));
  EXPECT_EQ(std::vector<int64_t>(on_host + kCount, on_host + 2 * kCount), from);
}

TEST(CudaMemory, MemoryOfTheHostThatIsNotThereIsNamed) {
  FakeGpu gpu(Settings{{"RIDGE_FAKE_CUDA_FAIL", "cuMemCreate:1:2"}});
  const Status status = gpu.device->AllocateWithHost(8 * kMiB, {6 * kMiB}).status();
  EXPECT_EQ(status.code(), ErrorCode::kDeviceMemory);
  EXPECT_EQ(status.message(),
            "6.00 MiB of the host's memory are not to be had: cuda:0: cuMemCreate failed: "
            "CUDA_ERROR_OUT_OF_MEMORY (2). hint: no --offload");
}

TEST(CudaMemory, ANodeOfTheHostThatIsRefusedIsNamed) {
  FakeGpu gpu(Settings{{"RIDGE_FAKE_CUDA_REFUSED_NODE", "0"}});
  const HostPart followed = {.bytes = 6 * kMiB, .followed = true};
  EXPECT_EQ(gpu.device->AllocateWithHost(8 * kMiB, followed).status().message(),
            "6.00 MiB of the host's memory are not to be had: cuda:0: cuMemCreate failed: "
            "CUDA_ERROR_INVALID_DEVICE (101). hint: in a container, docker run --cap-add SYS_NICE; "
            "or no --place");
}

TEST(CudaMemory, AnotherNodeOfTheHostTakesWhatTheNearestRefuses) {
  FakeGpu gpu(
      Settings{{"RIDGE_FAKE_CUDA_NEAREST_NODE", "1"}, {"RIDGE_FAKE_CUDA_REFUSED_NODE", "1"}});
  const auto arena = gpu.device->AllocateWithHost(8 * kMiB, {.bytes = 6 * kMiB, .followed = true});
  ASSERT_TRUE(arena.ok()) << arena.status().message();
  std::memset((*arena)->data(), 1, 6 * kMiB);
}

TEST(CudaMemory, APageIsAsLargeAsTheHostsIs) {
  FakeGpu gpu(Settings{{"RIDGE_FAKE_CUDA_HOST_GRANULE", "4194304"}});
  EXPECT_EQ(gpu.device->memory_space().page_bytes, 4 * kMiB);
  EXPECT_TRUE(gpu.device->AllocateWithHost(8 * kMiB, {4 * kMiB}).ok());
}

TEST(CudaMemory, AnOlderDriverMapsNothingOfTheHost) {
  for (const char* setting : {"RIDGE_FAKE_CUDA_MAPS", "RIDGE_FAKE_CUDA_MAPS_HOST"}) {
    FakeGpu gpu(Settings{{setting, "0"}});
    const Status status = gpu.device->AllocateWithHost(4 * kMiB, {2 * kMiB}).status();
    EXPECT_EQ(status.code(), ErrorCode::kUnsupported);
    EXPECT_EQ(status.message(),
              "cuda:0: Test GPU 0 maps no memory of the host. hint: a driver of CUDA 13 or newer, "
              "or neither --offload nor --place");
  }
}

TEST(CudaMemory, AHostWithoutMemoryOfANodeIsFollowedNowhere) {
  FakeGpu gpu(Settings{{"RIDGE_FAKE_CUDA_MAPS_NODE", "0"}});
  EXPECT_TRUE(gpu.device->AllocateWithHost(4 * kMiB, {2 * kMiB}).ok());
  const Status status =
      gpu.device->AllocateWithHost(4 * kMiB, {.bytes = 2 * kMiB, .followed = true}).status();
  EXPECT_EQ(status.code(), ErrorCode::kUnsupported);
  EXPECT_EQ(status.message(),
            "cuda:0: Test GPU 0 maps no memory of a NUMA node of the host, which its cores follow. "
            "hint: a driver of CUDA 13 or newer, or no --place");
}

TEST(CudaMemory, TooMuchIsRefusedWithBothNumbers) {
  FakeGpu gpu(Settings{{"RIDGE_FAKE_CUDA_BYTES", "8388608"}});
  const auto arena = Allocated(*gpu.device, 4 * kMiB);
  const Status status = gpu.device->Allocate(5 * kMiB).status();
  EXPECT_EQ(status.code(), ErrorCode::kDeviceMemory);
  EXPECT_EQ(
      status.message(),
      "an arena of 6.00 MiB is needed, 4.00 MiB of 8.00 MiB are free: cuda:0: cuMemCreate failed: "
      "CUDA_ERROR_OUT_OF_MEMORY (2). hint: --fit SIZE, or end what else uses it, which nvidia-smi "
      "lists");
  EXPECT_EQ(Free(*gpu.device), 4 * kMiB);
  const auto rest = Allocated(*gpu.device, 4 * kMiB);  // no error of the device
  EXPECT_TRUE(gpu.device->stream(0).Synchronize().ok());
}

TEST(CudaMemory, TooMuchIsRefusedAlikeWithoutVirtualMemoryManagement) {
  FakeGpu gpu(Settings{{"RIDGE_FAKE_CUDA_BYTES", "8388608"}, {"RIDGE_FAKE_CUDA_MAPS", "0"}});
  EXPECT_EQ(
      gpu.device->Allocate(9 * kMiB).status().message(),
      "an arena of 10.0 MiB is needed, 8.00 MiB of 8.00 MiB are free: cuda:0: cuMemAlloc failed: "
      "CUDA_ERROR_OUT_OF_MEMORY (2). hint: --fit SIZE, or end what else uses it, which nvidia-smi "
      "lists");
}

TEST(CudaMemory, WithoutVirtualMemoryManagementTheDriverAllocates) {
  FakeGpu gpu(Settings{{"RIDGE_FAKE_CUDA_MAPS", "0"}});
  const int64_t before = Free(*gpu.device);
  {
    const auto arena = Allocated(*gpu.device, 5 * kMiB);
    EXPECT_EQ(before - Free(*gpu.device), 6 * kMiB);
    EXPECT_EQ(gpu.hooks.calls("cuMemAlloc"), 1);
    EXPECT_EQ(gpu.hooks.calls("cuMemCreate"), 0);
    std::vector<int64_t> read(kCount);
    const std::vector<int64_t> from = Numbers(3);
    gpu.device->stream(0).Upload(arena->data(), from.data(), kBytes);
    gpu.device->stream(0).Download(read.data(), arena->data(), kBytes);
    ASSERT_TRUE(gpu.device->stream(0).Synchronize().ok());
    EXPECT_EQ(read, from);
  }
  EXPECT_EQ(Free(*gpu.device), before);
}

TEST(CudaMemory, StagingIsTheHosts) {
  FakeGpu gpu;
  const int64_t before = Free(*gpu.device);
  const auto staging = gpu.device->AllocateStaging(5000);
  ASSERT_TRUE(staging.ok()) << staging.status().message();
  EXPECT_TRUE((*staging)->host_visible());
  EXPECT_EQ((*staging)->bytes(), 8192);
  std::memset((*staging)->data(), 1, 8192);
  EXPECT_EQ(Free(*gpu.device), before);
}

TEST(CudaMemory, StagingThatCannotBeLockedIsNamedAsTheHosts) {
  FakeGpu gpu(Settings{{"RIDGE_FAKE_CUDA_FAIL", "cuMemHostAlloc:1:2"}});
  const Status status = gpu.device->AllocateStaging(5000).status();
  EXPECT_EQ(status.code(), ErrorCode::kDeviceMemory);
  EXPECT_EQ(status.message(),
            "8.00 KiB of the host's memory cannot be locked: cuda:0: cuMemHostAlloc failed: "
            "CUDA_ERROR_OUT_OF_MEMORY (2). hint: end what else uses it, which top lists, or raise "
            "the container's limit");
}

TEST(CudaMemory, IsGivenBackAfterTheWorkOnIt) {
  FakeGpu gpu(Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "3000"}});
  for (int round = 0; round < 5; ++round) {
    const auto arena = Allocated(*gpu.device, kBytes);
    gpu.device->stream(1).Clear(arena->data(), kBytes);
  }
  const Status status = gpu.device->stream(1).Synchronize();
  EXPECT_TRUE(status.ok()) << status.message();
}

// --- outside of memory ---------------------------------------------------------------------------

// A kernel that writes one byte at its argument.
DriverCode WriteByte(void* at) {
  *static_cast<volatile char*>(at) = 1;
  return DriverCode::kSuccess;
}

// Runs it at `offset` from the begin of an arena of one page.
void WriteAt(int64_t offset) {
  FakeGpu gpu;
  const auto arena = Allocated(*gpu.device, 2 * kMiB);
  auto& stream = static_cast<cuda::CudaStream&>(gpu.device->stream(0));
  const auto begin = reinterpret_cast<cuda::DevicePtr>(arena->data());
  gpu.hooks.launch(stream.handle(), WriteByte, static_cast<char*>(gpu.hooks.inside(begin)) + offset,
                   [](void*) {});
  ASSERT_TRUE(stream.Synchronize().ok());
}

TEST(CudaGuardDeathTest, AKernelThatWritesOutsideOfTheArenaEnds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  WriteAt(0);
  WriteAt(2 * kMiB - 1);
  EXPECT_DEATH(WriteAt(2 * kMiB), "");
  EXPECT_DEATH(WriteAt(-1), "");
}

TEST(CudaGuardDeathTest, TheHostCannotFollowAnAddress) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        FakeGpu gpu;
        const auto arena = Allocated(*gpu.device, kBytes);
        std::memset(arena->data(), 0, 1);
      },
      "");
}

TEST(CudaStream, ACopyBehindTheEndIsAnErrorThatStays) {
  FakeGpu gpu;
  const auto arena = Allocated(*gpu.device, 2 * kMiB);
  Stream& stream = gpu.device->stream(0);
  stream.Clear(arena->data() + 2 * kMiB - 4, 8);
  const Status first = stream.Synchronize();
  EXPECT_EQ(first.code(), ErrorCode::kDevice);
  EXPECT_EQ(first.message(),
            "cuda:0: cuStreamSynchronize failed: CUDA_ERROR_ILLEGAL_ADDRESS (700). hint: "
            "--kernel-launch sync names the node, and compute-sanitizer the kernel");
  stream.Clear(arena->data(), 8);
  for (Stream* any : {&stream, &gpu.device->stream(1)})
    EXPECT_EQ(any->Synchronize().message(), first.message());
}

// --- order ---------------------------------------------------------------------------------------

constexpr int kChunks = 12;

// Uploads in chunks on the second stream, reads on the first; true if what was read is
// right.
bool ReadsWhatWasUploaded(FakeGpu& gpu, bool waits, int64_t round) {
  const auto arena = Allocated(*gpu.device, kChunks * kBytes);
  Stream& compute = gpu.device->stream(0);
  compute.Clear(arena->data(), kChunks * kBytes);
  EXPECT_TRUE(compute.Synchronize().ok());
  const std::vector<int64_t> from = Numbers(1 + round);
  std::vector<int64_t> to(kCount);
  for (int chunk = 0; chunk < kChunks; ++chunk)
    gpu.device->stream(1).Upload(arena->data() + chunk * kBytes, from.data(), kBytes);
  const auto uploaded = gpu.device->MakeEvent();
  gpu.device->stream(1).Record(*uploaded);
  if (waits) compute.Wait(*uploaded);
  compute.Download(to.data(), arena->data() + (kChunks - 1) * kBytes, kBytes);
  EXPECT_TRUE(compute.Synchronize().ok());
  EXPECT_TRUE(gpu.device->stream(1).Synchronize().ok());
  return to == from;
}

// Of 50 rounds, those in which something else was read.
int WrongRounds(FakeGpu& gpu, bool waits) {
  int wrong = 0;
  for (int64_t round = 0; round < 50; ++round) wrong += !ReadsWhatWasUploaded(gpu, waits, round);
  return wrong;
}

TEST(CudaStream, ALateStreamShowsEveryMissingWaitAndNoPresentOne) {
  FakeGpu gpu(Settings{{"RIDGE_FAKE_CUDA_LAZY", "1"}, {"RIDGE_FAKE_CUDA_DELAY_US", "0"}});
  EXPECT_EQ(WrongRounds(gpu, /*waits=*/false), 50);
  EXPECT_EQ(WrongRounds(gpu, /*waits=*/true), 0);
}

// How many depends on the load of the machine.
TEST(CudaStream, DelaysShowMissingWaitsAndNoPresentOne) {
  FakeGpu gpu;
  EXPECT_GT(WrongRounds(gpu, /*waits=*/false), 0);
  EXPECT_EQ(WrongRounds(gpu, /*waits=*/true), 0);
}

TEST(CudaStream, CopiesWithinTheDeviceAndClears) {
  FakeGpu gpu;
  const auto arena = Allocated(*gpu.device, 3 * kBytes);
  std::byte* const at = arena->data();
  const std::vector<int64_t> from = Numbers(7);
  std::vector<int64_t> copied(kCount), cleared(kCount, 1), fresh(kCount);
  Stream& stream = gpu.device->stream(0);
  stream.Download(fresh.data(), at, kBytes);
  stream.Upload(at, from.data(), kBytes);
  stream.Copy(at + kBytes, at, kBytes);
  stream.Clear(at, kBytes);
  stream.Download(cleared.data(), at, kBytes);
  stream.Download(copied.data(), at + kBytes, kBytes);
  stream.Copy(at, at, 0);  // nothing
  ASSERT_TRUE(stream.Synchronize().ok());
  EXPECT_EQ(fresh, std::vector<int64_t>(kCount, -1));  // undefined is NaN here
  EXPECT_EQ(copied, from);
  EXPECT_EQ(cleared, std::vector<int64_t>(kCount, 0));
}

TEST(CudaEvent, TimesAreInTheOrderOfTheStream) {
  FakeGpu gpu;
  Stream& stream = gpu.device->stream(0);
  const auto first = gpu.device->MakeEvent(), second = gpu.device->MakeEvent();
  stream.Record(*first);
  const auto arena = Allocated(*gpu.device, kBytes);
  stream.Clear(arena->data(), kBytes);
  stream.Record(*second);
  ASSERT_TRUE(stream.Synchronize().ok());
  EXPECT_GT(first->seconds(), 0);
  EXPECT_GT(second->seconds(), first->seconds());
  EXPECT_LT(second->seconds(), 60);
}

// Milliseconds of 32 bits: without a newer origin they would be 8 ms apart after a day.
TEST(CudaEvent, TimesAreTakenFromANewOriginWhenTheOldOneIsFar) {
  FakeGpu gpu({}, {.clock_span_s = 0.001});
  Stream& stream = gpu.device->stream(0);
  const auto first = gpu.device->MakeEvent(), second = gpu.device->MakeEvent();
  stream.Record(*first);
  ASSERT_TRUE(stream.Synchronize().ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  stream.Record(*second);
  ASSERT_TRUE(stream.Synchronize().ok());
  const int64_t before = gpu.hooks.calls("cuEventRecord"), made = gpu.hooks.calls("cuEventCreate");
  const double end = second->seconds();  // from a new origin, which is later than both
  EXPECT_EQ(gpu.hooks.calls("cuEventRecord"), before + 1);
  const double span = end - first->seconds();
  EXPECT_GT(span, 0.019);
  EXPECT_LT(span, 10);
  EXPECT_EQ(second->seconds(), end);
  EXPECT_EQ(gpu.hooks.calls("cuEventRecord"), before + 1);  // nothing is newer than it
  EXPECT_EQ(gpu.hooks.calls("cuEventCreate"), made);
}

TEST(CudaDevice, AnyThreadMayEnqueue) {
  FakeGpu gpu;
  Status status = InvalidArgument("not run");
  std::thread other([&] {
    const auto arena = Allocated(*gpu.device, kBytes);
    gpu.device->stream(1).Clear(arena->data(), kBytes);
    status = gpu.device->stream(1).Synchronize();
  });
  other.join();
  EXPECT_TRUE(status.ok()) << status.message();
}

// --- which GPU -----------------------------------------------------------------------------------

Result<std::unique_ptr<CudaDevice>> Open(const Settings& settings, int ordinal) {
  const Variables variables(settings);
  const Result<cuda::Driver> driver = LoadFake();
  if (!driver.ok()) return driver.status();
  return CudaDevice::Open(*driver, ordinal);
}

void ExpectGpu(const std::string& visible, int ordinal, const std::string& name) {
  const auto device =
      Open({{"RIDGE_FAKE_CUDA_DEVICES", "3"}, {"CUDA_VISIBLE_DEVICES", visible}}, ordinal);
  ASSERT_TRUE(device.ok()) << device.status().message();
  EXPECT_EQ((*device)->gpu().name, name) << visible;
}

TEST(CudaDevice, OrdinalsFollowTheVisibleDevices) {
  ExpectGpu("0,1,2", 2, "Test GPU 2");
  ExpectGpu("2,0", 0, "Test GPU 2");
  ExpectGpu("2,0", 1, "Test GPU 0");
  ExpectGpu("GPU-a1", 0, "Test GPU 1");
  ExpectGpu("MIG-c7", 0, "Test GPU 0 MIG 1g");
}

TEST(CudaDevice, AMigInstanceHasAUuidOfItsKind) {
  for (const auto& [visible, uuid] :
       {std::pair("0", "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0"),
        std::pair("MIG-c7", "MIG-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0")}) {
    const auto device = Open({{"CUDA_VISIBLE_DEVICES", visible}}, 0);
    ASSERT_TRUE(device.ok()) << device.status().message();
    EXPECT_EQ((*device)->gpu().uuid, uuid);
  }
}

void ExpectRefused(const std::string& visible, int ordinal, const std::string& message) {
  const Status status =
      Open({{"RIDGE_FAKE_CUDA_DEVICES", "2"}, {"CUDA_VISIBLE_DEVICES", visible}}, ordinal).status();
  EXPECT_EQ(status.code(), ErrorCode::kDevice) << visible;
  EXPECT_EQ(status.message(), message);
}

TEST(CudaDevice, AGpuThatIsNotVisibleIsRefused) {
  ExpectRefused("1", 1, "there is no cuda:1: the driver shows 1 GPU. hint: cuda:0");
  ExpectRefused("", 0,
                "the NVIDIA driver shows no GPU: CUDA_VISIBLE_DEVICES is ''. hint: unset "
                "CUDA_VISIBLE_DEVICES");
  ExpectRefused(
      "0,5", 0,
      "CUDA_VISIBLE_DEVICES is '0,5': the driver shows 1 of the 2 that it names, and ends "
      "before '5'. hint: nvidia-smi -L lists the names");
  ExpectRefused(
      "MIG-a,MIG-b", 0,
      "CUDA_VISIBLE_DEVICES is 'MIG-a,MIG-b': it has 2 MIG instances; a process uses one. "
      "hint: export CUDA_VISIBLE_DEVICES=MIG-a");
}

}  // namespace
}  // namespace ridge::fake_cuda
