#include "ridge/dist/check_same.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ridge/core/threads.h"
#include "ridge/dist/core_share.h"
#include "ridge/dist/gather.h"

namespace ridge {
namespace {

// Rank 1 of several that all send what it sends, but for one that sends other bytes.
class Ranks final : public Communicator {
 public:
  Ranks(int size, int other) : size_(size), other_(other) {}
  int rank() const override { return 1; }
  int size() const override { return size_; }
  int64_t sent_bytes() const override { return 0; }
  Status Exchange(const std::vector<std::span<const std::byte>>& sends,
                  const std::vector<std::span<std::byte>>& receives) override {
    for (int r = 0; r < size_; ++r) {
      if (r == rank()) continue;
      std::copy(sends[r].begin(), sends[r].end(), receives[r].begin());
      if (r == other_) receives[r].front() ^= std::byte{1};
    }
    return Status();
  }

 private:
  const int size_, other_;
};

TEST(CheckSameTest, RanksThatWereStartedAlikePass) {
  Ranks ranks(3, /*other=*/-1);
  EXPECT_TRUE(CheckSameOnAllRanks(ranks, "options", "--lr 0.1").ok());
}

TEST(CheckSameTest, TheFirstRankThatDiffersFromRankZeroIsNamed) {
  Ranks two(4, /*other=*/2);
  const Status status = CheckSameOnAllRanks(two, "options", "--lr 0.1");
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "rank 2 has other options than rank 0; they must be the same on all 4 ranks. hint: one "
            "program, one command line and the same RIDGE_* variables everywhere");
  Ranks zero(4, /*other=*/0);  // rank 0 is the measure, also where it is the odd one
  EXPECT_EQ(CheckSameOnAllRanks(zero, "options", "").message().substr(0, 24),
            "rank 1 has other options");
}

TEST(GatherTest, EveryRanksValueStandsAtItsNumber) {
  Ranks ranks(3, /*other=*/2);
  EXPECT_THAT(*GatherFromAll(ranks, uint8_t{4}), ::testing::ElementsAre(4, 4, 5));
}

TEST(CoreShareTest, RanksOnTheSameCoresShareThem) {
  unsetenv("OMP_NUM_THREADS");
  Ranks together(2, /*other=*/-1), apart(2, /*other=*/0), many(1000, /*other=*/-1);
  EXPECT_EQ(*ThreadsOfRank(together), std::max(1, AvailableThreads() / 2));
  EXPECT_EQ(*ThreadsOfRank(apart), AvailableThreads());  // rank 0 is on another machine
  EXPECT_EQ(*ThreadsOfRank(many), 1);
}

}  // namespace
}  // namespace ridge
