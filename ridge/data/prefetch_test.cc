#include "ridge/data/prefetch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

namespace ridge {
namespace {

class PrefetchTest : public testing::TestWithParam<bool> {
 protected:
  bool background() const { return GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Threads, PrefetchTest, testing::Bool(), [](const auto& info) {
  return info.param ? "Background" : "Synchronous";
});

TEST_P(PrefetchTest, GivesSlotsInTurnUntilTheEnd) {
  int contents[2] = {-1, -1};
  int next = 0;
  const auto fill = [&](int slot) -> Result<bool> {
    if (next == 7) return false;
    contents[slot] = next++;
    return true;
  };
  Prefetch prefetch(2, fill, background());
  ASSERT_TRUE(prefetch.Start().ok());
  for (int i = 0; i < 7; ++i) {
    const auto taken = prefetch.Next();
    ASSERT_TRUE(taken.ok());
    EXPECT_EQ(taken->slot, i % 2);
    EXPECT_EQ(contents[taken->slot], i);
    prefetch.Release(taken->slot);
  }
  EXPECT_EQ(prefetch.Next()->slot, -1);
  EXPECT_EQ(prefetch.Next()->slot, -1);
}

TEST_P(PrefetchTest, NeverWritesASlotThatIsHeld) {
  std::vector<std::atomic<int>> writes(3);
  const auto fill = [&](int slot) -> Result<bool> {
    ++writes[static_cast<size_t>(slot)];
    return true;
  };
  Prefetch prefetch(3, fill, background());
  ASSERT_TRUE(prefetch.Start().ok());
  int oldest = prefetch.Next()->slot;
  for (int i = 0; i < 50; ++i) {
    const int held = prefetch.Next()->slot;
    const int before = writes[static_cast<size_t>(held)];
    prefetch.Release(oldest);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(writes[static_cast<size_t>(held)], before);
    oldest = held;
  }
}

TEST_P(PrefetchTest, GivesAnErrorAfterTheBatchesBeforeIt) {
  int next = 0;
  const auto fill = [&](int) -> Result<bool> {
    if (next++ == 1) return Status(ErrorCode::kInvalidData, "file: is damaged");
    return true;
  };
  Prefetch prefetch(2, fill, background());
  ASSERT_TRUE(prefetch.Start().ok());
  const auto first = prefetch.Next();
  ASSERT_TRUE(first.ok());
  prefetch.Release(first->slot);
  EXPECT_EQ(prefetch.Next().status().message(), "file: is damaged");
  EXPECT_EQ(prefetch.Next().status().code(), ErrorCode::kInvalidData);
}

TEST_P(PrefetchTest, TurnsExceptionsIntoErrors) {
  const auto fill = [](int) -> Result<bool> { throw std::runtime_error("boom"); };
  Prefetch prefetch(2, fill, background());
  ASSERT_TRUE(prefetch.Start().ok());
  EXPECT_EQ(prefetch.Next().status().code(), ErrorCode::kInternal);
  EXPECT_EQ(prefetch.Next().status().message(), "data: while reading samples: boom");
  const auto no_memory = [](int) -> Result<bool> { throw std::bad_alloc(); };
  Prefetch starved(2, no_memory, background());
  ASSERT_TRUE(starved.Start().ok());
  EXPECT_EQ(starved.Next().status().code(), ErrorCode::kOutOfMemory);
}

TEST_P(PrefetchTest, StartsAnewAfterAStop) {
  int next = 0;
  const auto fill = [&](int) -> Result<bool> {
    ++next;
    return true;
  };
  Prefetch prefetch(2, fill, background());
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(prefetch.Start().ok());
    const auto taken = prefetch.Next();
    ASSERT_TRUE(taken.ok());
    EXPECT_EQ(taken->slot, 0);
    prefetch.Stop();
    EXPECT_EQ(prefetch.Next().status().code(), ErrorCode::kUnavailable);
    prefetch.Release(0);  // nothing is held after a stop: no effect
  }
  EXPECT_GE(next, 20);
}

TEST(Prefetch, EndsWhileTheThreadWaitsForAFreeSlot) {
  Prefetch prefetch(
      2, [](int) -> Result<bool> { return true; }, /*background=*/true);
  ASSERT_TRUE(prefetch.Start().ok());
  ASSERT_TRUE(prefetch.Next().ok());  // and goes away with the thread at work or waiting
}

TEST(Prefetch, StopsFromAnotherThreadWhileNextWaits) {
  std::atomic<bool> go{false};
  const auto slow = [&](int) -> Result<bool> {
    while (!go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return true;
  };
  Prefetch prefetch(1, slow, /*background=*/true);
  ASSERT_TRUE(prefetch.Start().ok());
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    go = true;
    prefetch.Stop();
  });
  while (prefetch.Next().ok()) prefetch.Release(0);
  other.join();
  EXPECT_EQ(prefetch.Next().status().message(), "data: the input pipeline was stopped");
}

TEST(Prefetch, MeasuresOnlyTheWaiting) {
  std::atomic<int> begun{0};
  const auto first_is_slow = [&](int) -> Result<bool> {
    if (++begun == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return true;
  };
  Prefetch prefetch(3, first_is_slow, /*background=*/true);
  ASSERT_TRUE(prefetch.Start().ok());
  EXPECT_GT(prefetch.Next()->wait_seconds, 0.005);
  while (begun < 3) std::this_thread::yield();  // then the second one is ready
  EXPECT_EQ(prefetch.Next()->wait_seconds, 0);
}

}  // namespace
}  // namespace ridge
