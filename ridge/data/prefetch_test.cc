#include "ridge/data/prefetch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace ridge {
namespace {

// Slots that one task fills; there is no end of them.
SlotFiller WholeSlots(std::function<Status(int slot)> fill) {
  return {[](int) -> Result<int> { return 1; },
          [fill = std::move(fill)](int slot, int, int) { return fill(slot); }};
}

class PrefetchTest : public testing::TestWithParam<int> {
 protected:
  int workers() const { return GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Workers, PrefetchTest, testing::Values(0, 1, 3),
                         testing::PrintToStringParamName());

TEST_P(PrefetchTest, GivesSlotsInTurnUntilTheEnd) {
  std::array<int, 2> contents = {-1, -1};
  int next = 0;
  const SlotFiller filler = {[&](int slot) -> Result<int> {
                               if (next == 7) return 0;
                               contents[static_cast<size_t>(slot)] = next++;
                               return 1;
                             },
                             [](int, int, int) { return Status(); }};
  Prefetch prefetch(2, filler, workers());
  ASSERT_TRUE(prefetch.Start().ok());
  for (int i = 0; i < 7; ++i) {
    const auto taken = prefetch.Next();
    ASSERT_TRUE(taken.ok());
    EXPECT_EQ(taken->slot, i % 2);
    EXPECT_EQ(contents[static_cast<size_t>(taken->slot)], i);
    prefetch.Release(taken->slot);
  }
  EXPECT_EQ(prefetch.Next()->slot, -1);
  EXPECT_EQ(prefetch.Next()->slot, -1);
}

TEST_P(PrefetchTest, NeverWritesASlotThatIsHeld) {
  std::vector<std::atomic<int>> writes(3);
  const SlotFiller filler = WholeSlots([&](int slot) {
    ++writes[static_cast<size_t>(slot)];
    return Status();
  });
  Prefetch prefetch(3, filler, workers());
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

TEST_P(PrefetchTest, GivesTheErrorOfTheFirstTaskAfterTheBatchesBeforeIt) {
  std::atomic<int> next{0};
  const SlotFiller filler = {[](int) -> Result<int> { return 4; },
                             [&](int, int task, int) {
                               if (next++ < 4 || task == 0) return Status();
                               return Status(ErrorCode::kInvalidData,
                                             fmt::format("file: task {} is damaged", task));
                             }};
  Prefetch prefetch(2, filler, workers());
  ASSERT_TRUE(prefetch.Start().ok());
  const auto first = prefetch.Next();
  ASSERT_TRUE(first.ok());
  prefetch.Release(first->slot);
  EXPECT_EQ(prefetch.Next().status().message(), "file: task 1 is damaged");
  EXPECT_EQ(prefetch.Next().status().message(), "file: task 1 is damaged");
  EXPECT_EQ(prefetch.Next().status().code(), ErrorCode::kInvalidData);
}

TEST_P(PrefetchTest, TurnsExceptionsIntoErrors) {
  Prefetch prefetch(2, WholeSlots([](int) -> Status { throw std::runtime_error("boom"); }),
                    workers());
  ASSERT_TRUE(prefetch.Start().ok());
  EXPECT_EQ(prefetch.Next().status().code(), ErrorCode::kInternal);
  EXPECT_EQ(prefetch.Next().status().message(), "data: while reading samples: boom");
  Prefetch starved(2, WholeSlots([](int) -> Status { throw std::bad_alloc(); }), workers());
  ASSERT_TRUE(starved.Start().ok());
  EXPECT_EQ(starved.Next().status().code(), ErrorCode::kOutOfMemory);
}

TEST_P(PrefetchTest, StartsAnewAfterAStop) {
  std::atomic<int> next{0};
  const SlotFiller filler = WholeSlots([&](int) {
    ++next;
    return Status();
  });
  Prefetch prefetch(2, filler, workers());
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
  Prefetch prefetch(2, WholeSlots([](int) { return Status(); }), /*workers=*/2);
  ASSERT_TRUE(prefetch.Start().ok());
  ASSERT_TRUE(prefetch.Next().ok());  // and goes away with the thread at work or waiting
}

TEST(Prefetch, StopsFromAnotherThreadWhileNextWaits) {
  std::atomic<bool> go{false};
  const SlotFiller slow = WholeSlots([&](int) {
    while (!go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Status();
  });
  Prefetch prefetch(1, slow, /*workers=*/1);
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

TEST_P(PrefetchTest, FillsASlotByTasksOfItsWorkers) {
  constexpr int kTasks = 50;
  std::array<std::array<int, kTasks>, 2> contents{};
  int begun = 0;
  std::array<int, 2> batches{};
  const SlotFiller filler = {[&](int slot) -> Result<int> {
                               batches[static_cast<size_t>(slot)] = ++begun;
                               return begun > 20 ? 0 : kTasks;
                             },
                             [&](int slot, int task, int worker) {
                               EXPECT_LT(worker, std::max(1, workers()));
                               const auto s = static_cast<size_t>(slot);
                               contents[s][static_cast<size_t>(task)] = batches[s] * 100 + task;
                               return Status();
                             }};
  Prefetch prefetch(2, filler, workers());
  ASSERT_TRUE(prefetch.Start().ok());
  for (int batch = 1; batch <= 20; ++batch) {
    const int slot = prefetch.Next()->slot;
    ASSERT_GE(slot, 0);
    for (int task = 0; task < kTasks; ++task)
      ASSERT_EQ(contents[static_cast<size_t>(slot)][static_cast<size_t>(task)], batch * 100 + task);
    prefetch.Release(slot);
  }
  EXPECT_EQ(prefetch.Next()->slot, -1);
}

TEST_P(PrefetchTest, SaysThatASlotIsFilledBeforeItGivesItOut) {
  constexpr int kTasks = 5, kRounds = 20;
  std::array<std::atomic<int>, 2> done = {}, said = {};
  SlotFiller filler;
  filler.begin = [&](int slot) -> Result<int> {
    done[static_cast<size_t>(slot)] = 0;
    return kTasks;
  };
  filler.run = [&](int slot, int, int) {
    ++done[static_cast<size_t>(slot)];
    return Status();
  };
  filler.filled = [&](int slot) {
    EXPECT_EQ(done[static_cast<size_t>(slot)], kTasks);
    ++said[static_cast<size_t>(slot)];
  };
  Prefetch prefetch(2, filler, workers());
  ASSERT_TRUE(prefetch.Start().ok());
  for (int round = 0; round < kRounds; ++round) {
    const auto taken = prefetch.Next();
    ASSERT_TRUE(taken.ok());
    EXPECT_EQ(said[static_cast<size_t>(taken->slot)], round / 2 + 1);
    prefetch.Release(taken->slot);
  }
}

TEST(Prefetch, MeasuresOnlyTheWaiting) {
  std::atomic<int> begun{0};
  const SlotFiller first_is_slow = WholeSlots([&](int) {
    if (++begun == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return Status();
  });
  Prefetch prefetch(3, first_is_slow, /*workers=*/1);
  ASSERT_TRUE(prefetch.Start().ok());
  EXPECT_GT(prefetch.Next()->wait_seconds, 0.005);
  while (begun < 3) std::this_thread::yield();  // then the second one is ready
  EXPECT_EQ(prefetch.Next()->wait_seconds, 0);
}

}  // namespace
}  // namespace ridge
