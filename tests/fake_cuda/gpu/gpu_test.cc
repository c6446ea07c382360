// What must hold on any driver: skipped where there is none, run on the fake one by
// RIDGE_CUDA_PATH, and the first thing to run on a GPU.  It asks for a GPU that nobody else uses.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "ridge/core/units.h"
#include "tests/fake_cuda/gpu/with_gpu.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

class GpuTest : public WithGpu {
 protected:
  int64_t Free() {
    const Result<int64_t> free = device_->FreeBytes();
    EXPECT_TRUE(free.ok()) << free.status().message();
    return *free;
  }
  std::unique_ptr<Memory> Arena(int64_t bytes) {
    Result<std::unique_ptr<Memory>> memory = device_->Allocate(bytes);
    EXPECT_TRUE(memory.ok()) << memory.status().message();
    return std::move(*memory);
  }
  std::unique_ptr<Memory> Staging(int64_t bytes, int first) {
    Result<std::unique_ptr<Memory>> memory = device_->AllocateStaging(bytes);
    EXPECT_TRUE(memory.ok()) << memory.status().message();
    auto* numbers = reinterpret_cast<int32_t*>((*memory)->data());
    std::iota(numbers, numbers + bytes / 4, first);
    return std::move(*memory);
  }
};

TEST_F(GpuTest, HasANameAndMemory) {
  const GpuFacts& gpu = device_->gpu();
  EXPECT_NE(gpu.name, "");
  EXPECT_GE(gpu.major, 5);
  EXPECT_GT(gpu.memory_bytes, 0);
  EXPECT_EQ(gpu.uuid.size(), 40u);
  EXPECT_EQ(device_->memory_space().page_bytes % 256, 0);
}

TEST_F(GpuTest, AnArenaTakesItsPagesAndGivesThemBack) {
  const int64_t page = device_->memory_space().page_bytes;
  (void)Arena(page);  // what the driver takes once
  const int64_t before = Free();
  {
    const auto arena = Arena(20 * page - 1);
    EXPECT_EQ(arena->bytes(), 20 * page);
    fmt::print("an arena of {} took {}\n", FormatBytes(arena->bytes()),
               FormatBytes(before - Free()));
    EXPECT_EQ(before - Free(), arena->bytes());
  }
  EXPECT_EQ(Free(), before);
}

TEST_F(GpuTest, BytesComeBackAsTheyWent) {
  const int64_t bytes = 4 * kMiB;
  const auto arena = Arena(2 * bytes);
  const auto from = Staging(bytes, 1), to = Staging(2 * bytes, 0);
  Stream& stream = device_->stream(0);
  stream.Upload(arena->data(), from->data(), bytes);
  stream.Copy(arena->data() + bytes, arena->data(), bytes);
  stream.Clear(arena->data(), bytes / 2);
  stream.Download(to->data(), arena->data(), 2 * bytes);
  const Status status = stream.Synchronize();
  ASSERT_TRUE(status.ok()) << status.message();
  const std::vector<std::byte> zeros(static_cast<size_t>(bytes / 2));
  EXPECT_EQ(std::memcmp(to->data(), zeros.data(), zeros.size()), 0);
  EXPECT_EQ(std::memcmp(to->data() + bytes / 2, from->data() + bytes / 2, bytes / 2), 0);
  EXPECT_EQ(std::memcmp(to->data() + bytes, from->data(), bytes), 0);
}

TEST_F(GpuTest, AWaitOrdersTwoStreams) {
  const int64_t bytes = 4 * kMiB;
  const auto arena = Arena(bytes), to = Staging(bytes, 0);
  const auto uploaded = device_->MakeEvent(), read = device_->MakeEvent();
  for (int round = 1; round <= 10; ++round) {
    const auto from = Staging(bytes, round);
    device_->stream(1).Wait(*read);
    device_->stream(1).Upload(arena->data(), from->data(), bytes);
    device_->stream(1).Record(*uploaded);
    device_->stream(0).Wait(*uploaded);
    device_->stream(0).Download(to->data(), arena->data(), bytes);
    device_->stream(0).Record(*read);
    const Status status = device_->stream(0).Synchronize();
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(std::memcmp(to->data(), from->data(), bytes), 0) << round;
  }
}

TEST_F(GpuTest, EventsTakeTimes) {
  const int64_t bytes = 16 * kMiB;
  const auto arena = Arena(2 * bytes);
  const auto begin = device_->MakeEvent(), end = device_->MakeEvent();
  Stream& stream = device_->stream(0);
  stream.Record(*begin);
  for (int copy = 0; copy < 10; ++copy) stream.Copy(arena->data() + bytes, arena->data(), bytes);
  stream.Record(*end);
  ASSERT_TRUE(stream.Synchronize().ok());
  const double seconds = end->seconds() - begin->seconds();
  EXPECT_GT(seconds, 0);
  fmt::print("10 copies of {}: {}, {}\n", FormatBytes(bytes), FormatSeconds(seconds),
             FormatRate(2 * 10 * static_cast<double>(bytes) / seconds, "B"));
}

TEST_F(GpuTest, AnEventBeforeTheOriginHasANegativeTime) {
  const CudaOptions newest = {.clock_span_s = 0};  // every time is from an origin after the event
  const Result<std::unique_ptr<CudaDevice>> device = CudaDevice::Open(*LoadDriver(), 0, newest);
  ASSERT_TRUE(device.ok()) << device.status().message();
  const auto arena = Arena(kMiB);
  const auto begin = (*device)->MakeEvent(), end = (*device)->MakeEvent();
  Stream& stream = (*device)->stream(0);
  stream.Record(*begin);
  stream.Clear(arena->data(), kMiB);
  stream.Record(*end);
  ASSERT_TRUE(stream.Synchronize().ok());
  const double begin_s = begin->seconds(), end_s = end->seconds();
  EXPECT_GT(end_s, begin_s);
  EXPECT_TRUE(stream.Synchronize().ok());
}

TEST_F(GpuTest, TooMuchMemoryIsRefusedAndLeavesTheDeviceWell) {
  const Status status = device_->Allocate(2 * device_->gpu().memory_bytes).status();
  EXPECT_EQ(status.code(), ErrorCode::kDeviceMemory);
  EXPECT_TRUE(status.message().starts_with("an arena of ")) << status.message();
  const auto arena = Arena(kMiB);
  device_->stream(0).Clear(arena->data(), kMiB);
  EXPECT_TRUE(device_->stream(0).Synchronize().ok());
}

// In a process of its own: what happens to the GPU's context stays.
using GpuDeathTest = GpuTest;
TEST_F(GpuDeathTest, AWriteBehindTheArenaIsAnError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  if (!device_->gpu().maps_memory) GTEST_SKIP() << "not on this machine: no guards";
  EXPECT_EXIT(
      {
        const auto arena = Arena(kMiB);
        device_->stream(0).Clear(arena->data() + arena->bytes() - 4, 8);
        const Status first = device_->stream(0).Synchronize();
        fmt::print(stderr, "{}\n", first.message());
        std::_Exit(!first.ok() && !device_->stream(1).Synchronize().ok() ? 42 : 0);
      },
      testing::ExitedWithCode(42), "cuda:0: cu");
}

}  // namespace
}  // namespace ridge::cuda
