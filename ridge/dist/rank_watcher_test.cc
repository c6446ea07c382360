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
    RankWatcher watcher(std::move(*board), nullptr, OptionsOf(ranks.rank()));
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

// Rank 1 has come to the bucket, and not to the gather.
TEST(RankWatcherTest, WhereBothWaitTheUrgentExchangeIsNamed) {
  RunRanks(2, [](Communicator& ranks) {
    auto board = RankBoard::Open(ranks);
    ASSERT_TRUE(board.ok());
    RankWatcher watcher(std::move(*board), nullptr, OptionsOf(ranks.rank()));
    watcher.Name("all_reduce 'train'");
    watcher.Name("all_gather 'train'", RankChannel::kUrgent);
    watcher.Tell({RankWork::kStep, 4, 0.001});
    watcher.Enter(1000);
    watcher.Enter(8, RankChannel::kUrgent);
    watcher.Leave(RankChannel::kUrgent);
    if (ranks.rank() == 0) {
      watcher.Enter(8, RankChannel::kUrgent);
      while (!watcher.ends()) std::this_thread::yield();
      const std::string text = watcher.TakeVerdict();
      EXPECT_NE(text.find("in all_gather 'train' (step 5, collective 3); rank 1 is late: at "
                          "collective 2, its process "),
                std::string::npos)
          << text;
    } else {
      volatile int spins = 0;
      for (const double end_s = MonotonicSeconds() + 10 * kSoon_s; MonotonicSeconds() < end_s;)
        spins = spins + 1;
    }
    ASSERT_TRUE(Barrier(ranks).ok());
  });
}

TEST(FarBoardTest, RanksOfOtherMachinesAreSeenToo) {
  RunRanks(4, [](Communicator& ranks) {
    auto board = RankBoard::Open(ranks, ranks.rank() < 2 ? "a" : "b");
    ASSERT_TRUE(board.ok());
    EXPECT_EQ((*board)->first_beside(3), 2);
    auto far = FarBoard::Open(ranks, **board);
    ASSERT_TRUE(far.ok());
    EXPECT_EQ(*far != nullptr, ranks.rank() % 2 == 0);  // one of each machine
    (*board)->line(ranks.rank()).place.store(static_cast<uint64_t>(10 + ranks.rank()));
    (*board)->line(ranks.rank()).urgent_place.store(static_cast<uint64_t>(20 + ranks.rank()));
    (*board)->line(ranks.rank()).step.store(100 + ranks.rank());
    (*board)->line(ranks.rank()).beats.store(1);
    ASSERT_TRUE(Barrier(ranks).ok());
    const double end_s = MonotonicSeconds() + 10;
    const auto sees_all = [&] {
      for (int rank = 0; rank < 4; ++rank) {
        if ((*board)->line(rank).place.load() != static_cast<uint64_t>(10 + rank)) return false;
      }
      return true;
    };
    while (!sees_all() && MonotonicSeconds() < end_s) {
      if (*far != nullptr) (*far)->Exchange(**board);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_TRUE(sees_all()) << ranks.rank();
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_EQ((*board)->line(rank).step.load(), 100 + rank);
      EXPECT_EQ((*board)->line(rank).urgent_place.load(), static_cast<uint64_t>(20 + rank));
    }
    // The others may still wait for this one's lines.
    for (int i = 0; i < 20; ++i) {
      if (*far != nullptr) (*far)->Exchange(**board);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ASSERT_TRUE(Barrier(ranks).ok());
  });
}

TEST(FarBoardTest, ADatagramWithoutTheKeyOrOfWrongRanksChangesNothing) {
  RunRanks(2, [](Communicator& ranks) {
    auto board = RankBoard::Open(ranks, ranks.rank() == 0 ? "a" : "b");
    ASSERT_TRUE(board.ok());
    auto far = FarBoard::Open(ranks, **board);
    ASSERT_TRUE(far.ok() && *far != nullptr);
    if (ranks.rank() == 0) {
      const std::vector<std::byte> good = (*far)->Pack(**board, 0, 1);
      for (size_t i = 0; i < good.size() && i < 24; ++i) {  // key, first rank, count
        std::vector<std::byte> bad = good;
        bad[i] ^= std::byte{0x41};
        EXPECT_FALSE((*far)->Take(bad, **board)) << i;
      }
      EXPECT_FALSE((*far)->Take(good, **board));  // it is of this machine
      for (size_t size = 0; size < good.size(); ++size)
        EXPECT_FALSE((*far)->Take(std::span(good).first(size), **board)) << size;
      EXPECT_EQ((*board)->line(1).place.load(), 0U);
    }
    ASSERT_TRUE(Barrier(ranks).ok());
  });
}

TEST(RankWatcherTest, ACheckpointKeepsNobodyFromWaiting) {
  RunRanks(2, [](Communicator& ranks) {
    auto board = RankBoard::Open(ranks);
    ASSERT_TRUE(board.ok());
    RankWatcher watcher(std::move(*board), nullptr, OptionsOf(ranks.rank()));
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
    RankWatcher watcher(std::move(*board), nullptr, std::move(options));
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
