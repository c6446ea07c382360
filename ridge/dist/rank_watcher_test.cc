#include "ridge/dist/rank_watcher.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "ridge/core/process.h"
#include "ridge/dist/gather.h"
#include "ridge/dist/test_ranks.h"

namespace ridge {
namespace {

constexpr double kSoon_s = 0.2;

RankWatcher::Options OptionsOf(int rank) {
  RankWatcher::Options options;
  options.rank = rank;
  options.limit_s = kSoon_s;
  options.look_s = 0.02;
  options.tell = [](const std::string&) {};
  options.end = [] {};
  return options;
}

int64_t PagesInSight() {
  int64_t pages = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    pages += entry.path().filename().string().starts_with("ridge-ranks-");
  return pages;
}

TEST(RankBoardTest, RanksOfAMachineSeeEachOtherAndNoFileStays) {
  RunRanks(3, [](Communicator& ranks) {
    const auto board = RankBoard::Open(ranks);
    ASSERT_TRUE(board.ok()) << board.status().message();
    (*board)->line(ranks.rank()).place.store(static_cast<uint64_t>(10 + ranks.rank()));
    ASSERT_TRUE(Barrier(ranks).ok());
    for (int rank = 0; rank < 3; ++rank)
      EXPECT_EQ((*board)->line(rank).place.load(), static_cast<uint64_t>(10 + rank));
  });
  EXPECT_EQ(PagesInSight(), 0);
}

TEST(RankBoardTest, OneRankOfAMachineSpeaks) {
  std::atomic<int> speakers{0};
  RunRanks(3, [&](Communicator& ranks) {
    const auto board = RankBoard::Open(ranks);
    ASSERT_TRUE(board.ok());
    speakers += (*board)->ClaimWord() ? 1 : 0;
    ASSERT_TRUE(Barrier(ranks).ok());
  });
  EXPECT_EQ(speakers, 1);
}

TEST(RankWatcherTest, ARankThatDoesNotComeIsNamedToThoseThatWait) {
  RunRanks(2, [](Communicator& ranks) {
    auto board = RankBoard::Open(ranks);
    ASSERT_TRUE(board.ok());
    RankWatcher watcher(std::move(*board), OptionsOf(ranks.rank()));
    watcher.Name("all_reduce 'train'");
    watcher.Tell({RankWork::kStep, 4, 0.001});
    if (ranks.rank() == 0) {
      watcher.Enter(1000);
      while (!watcher.ends()) std::this_thread::yield();
      const std::string text = watcher.TakeVerdict();
      EXPECT_EQ(text.substr(0, 15), "rank 0: waited ");
      EXPECT_NE(text.find("in all_reduce 'train' (step 5, collective 2); rank 1 is late: at "
                          "collective 1, its process "),
                std::string::npos)
          << text;
      EXPECT_NE(text.find(" runs, but has not reached the collective"), std::string::npos) << text;
    }
    volatile int spins = 0;
    for (const double end_s = MonotonicSeconds() + 10 * kSoon_s; MonotonicSeconds() < end_s;)
      spins = spins + 1;
    EXPECT_EQ(watcher.ends(), ranks.rank() == 0);
    ASSERT_TRUE(Barrier(ranks).ok());
  });
}

TEST(RankWatcherTest, ACheckpointKeepsNobodyFromWaiting) {
  RunRanks(2, [](Communicator& ranks) {
    auto board = RankBoard::Open(ranks);
    ASSERT_TRUE(board.ok());
    RankWatcher watcher(std::move(*board), OptionsOf(ranks.rank()));
    watcher.Tell({ranks.rank() == 1 ? RankWork::kCheckpoint : RankWork::kStep, 4, 0.001});
    if (ranks.rank() == 0) watcher.Enter(1000);
    std::this_thread::sleep_for(std::chrono::duration<double>(5 * kSoon_s));
    EXPECT_FALSE(watcher.ends());
    ASSERT_TRUE(Barrier(ranks).ok());
  });
}

TEST(RankWatcherTest, EndsTheJobWhenTheFirstThreadCannot) {
  RunRanks(2, [](Communicator& ranks) {
    auto board = RankBoard::Open(ranks);
    ASSERT_TRUE(board.ok());
    std::atomic<int> ended{0};
    std::string told;  // before `ended`
    RankWatcher::Options options = OptionsOf(ranks.rank());
    options.tell = [&](const std::string& text) { told = text; };
    options.end = [&] { ++ended; };
    RankWatcher watcher(std::move(*board), std::move(options));
    watcher.Enter(1000);
    while (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_TRUE(Barrier(ranks).ok());
    if (!told.empty()) {
      EXPECT_NE(told.find("all 2 ranks are inside it: the transport does not progress"),
                std::string::npos)
          << told;
    }
  });
}

}  // namespace
}  // namespace ridge
