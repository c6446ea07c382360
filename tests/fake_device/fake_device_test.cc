// The fake device itself: what it forbids, and that it says so.
#include "tests/fake_device/fake_device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

namespace ridge::fake {
namespace {

constexpr int64_t kCount = 1000, kBytes = kCount * 8;

std::vector<int64_t> Numbers(int64_t first) {
  std::vector<int64_t> numbers(kCount);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

std::unique_ptr<Memory> Allocated(FakeDevice& device, int64_t bytes) {
  Result<std::unique_ptr<Memory>> memory = device.Allocate(bytes);
  EXPECT_TRUE(memory.ok()) << memory.status().message();
  return std::move(*memory);
}

TEST(FakeDeviceDeathTest, TheHostCannotReadOrWriteItsMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        FakeDevice device({});
        const auto memory = Allocated(device, kBytes);
        volatile std::byte* at = memory->data();
        [[maybe_unused]] const std::byte read = *at;
      },
      "");
  EXPECT_DEATH(
      {
        FakeDevice device({});
        const auto memory = Allocated(device, kBytes);
        std::memset(memory->data(), 0, 1);
      },
      "");
}

TEST(FakeDevice, AnAddressOfTheHostIsRefused) {
  FakeDevice device({});
  int64_t host = 0;
  EXPECT_THROW(device.stream(0).Clear(&host, 8), Bug);
}

TEST(FakeDevice, MemoryStartsAsNaN) {
  FakeDevice device({});
  const auto memory = Allocated(device, kBytes);
  EXPECT_EQ(memory->bytes(), 1 << 16);
  std::vector<int64_t> read(kCount);
  device.stream(0).Download(read.data(), memory->data(), kBytes);
  ASSERT_TRUE(device.stream(0).Synchronize().ok());
  EXPECT_EQ(read, std::vector<int64_t>(kCount, -1));
}

// Round trip over both streams: up on 0, copied on 1, down on 0.
Status RoundTrip(FakeDevice& device, const std::vector<int64_t>& from, std::vector<int64_t>& to) {
  const auto memory = Allocated(device, 2 * kBytes);
  std::byte* first = memory->data();
  std::byte* second = first + kBytes;
  Stream& main = device.stream(0);
  Stream& other = device.stream(1);
  const auto uploaded = device.MakeEvent(), copied = device.MakeEvent();
  main.Upload(first, from.data(), kBytes);
  main.Record(*uploaded);
  other.Wait(*uploaded);
  other.Copy(second, first, kBytes);
  other.Record(*copied);
  main.Wait(*copied);
  main.Download(to.data(), second, kBytes);
  return main.Synchronize();
}

TEST(FakeDevice, EventsOrderStreams) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    FakeDevice device({.seed = seed, .most_delay_us = 200});
    const std::vector<int64_t> from = Numbers(static_cast<int64_t>(seed));
    std::vector<int64_t> to(kCount);
    const Status status = RoundTrip(device, from, to);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(to, from);
  }
}

TEST(FakeDevice, AMissingWaitIsAnErrorWhateverTheDelays) {
  const char* const expected[] = {
      "fake device: 'copy' on stream 1 reads bytes that 'upload' on stream 0 writes, and no event "
      "orders them",
      "fake device: 'download' on stream 0 reads bytes that 'copy' on stream 1 writes, and no "
      "event "
      "orders them"};
  for (int64_t wait = 0; wait < 2; ++wait) {
    for (const int delay_us : {0, 200}) {
      FakeDevice device({.most_delay_us = delay_us, .drop_wait = wait});
      std::vector<int64_t> to(kCount);
      const Status status = RoundTrip(device, Numbers(0), to);
      EXPECT_EQ(status.code(), ErrorCode::kDevice);
      EXPECT_EQ(status.message(), expected[wait]);
    }
  }
}

TEST(FakeDevice, AWriteWaitsForReads) {
  FakeDevice device({});
  const auto memory = Allocated(device, 2 * kBytes);
  const auto cleared = device.MakeEvent();
  device.stream(0).Clear(memory->data(), 2 * kBytes);
  device.stream(0).Record(*cleared);
  device.stream(1).Wait(*cleared);
  device.stream(1).Copy(memory->data() + kBytes, memory->data(), kBytes);
  device.stream(0).Clear(memory->data() + 100, 8);
  EXPECT_EQ(device.stream(0).Synchronize().message(),
            "fake device: 'clear' on stream 0 writes bytes that 'copy' on stream 1 reads, and no "
            "event orders them");
}

TEST(FakeDevice, TheHostOrdersWhatItWaitedFor) {
  FakeDevice device({});
  const auto memory = Allocated(device, kBytes);
  device.stream(0).Clear(memory->data(), kBytes);
  ASSERT_TRUE(device.stream(0).Synchronize().ok());
  device.stream(1).Clear(memory->data(), kBytes);
  EXPECT_TRUE(device.stream(1).Synchronize().ok());
}

TEST(FakeDevice, TheFirstErrorStaysAndSurfacesAtEverySynchronization) {
  FakeDevice device({.fail_kernel = 1});
  auto& stream = static_cast<FakeStream&>(device.stream(0));
  int ran = 0;
  const auto run = [&ran] {
    ++ran;
    return Status();
  };
  for (const char* name : {"a", "b", "c"}) stream.Launch(name, {}, run);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(stream.Synchronize().message(), "fake device: 'b' failed as it was told to");
    EXPECT_EQ(device.stream(1).Synchronize().code(), ErrorCode::kDevice);
  }
  EXPECT_EQ(ran, 1);
}

TEST(FakeDevice, MoreMemoryThanThereIsIsRefusedWithTheNumbers) {
  FakeDevice device({.memory_bytes = 1 << 20});
  const auto half = Allocated(device, 1 << 19);
  const auto more = device.Allocate(1 << 20);
  EXPECT_EQ(more.status().code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(more.status().message(),
            "fake device: 1048576 bytes are needed, 524288 of 1048576 are free");
  EXPECT_TRUE(device.Allocate(1 << 19).ok());
}

}  // namespace
}  // namespace ridge::fake
