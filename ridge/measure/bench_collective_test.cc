#include "ridge/measure/bench_collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "ridge/backend/reference/reference_backend.h"

namespace ridge {
namespace {

// Rank 0 of several that answer at once; notes what it sends to each.
class Ranks final : public Communicator {
 public:
  explicit Ranks(int size) : size_(size) {}
  int rank() const override { return 0; }
  int size() const override { return size_; }
  int64_t sent_bytes() const override { return 0; }
  Status Exchange(const std::vector<std::span<const std::byte>>& sends,
                  const std::vector<std::span<std::byte>>& receives) override {
    std::vector<size_t> sizes;
    for (int r = 1; r < size_; ++r) {
      const size_t both = std::min(sends[r].size(), receives[r].size());
      std::copy(sends[r].begin(), sends[r].begin() + both, receives[r].begin());
      sizes.push_back(sends[r].size());
    }
    ++seen[sizes];
    return Status();
  }

  std::map<std::vector<size_t>, int> seen;  // sizes to ranks 1, 2, ...: how often

 private:
  const int size_;
};

TEST(BenchCollectiveTest, CountsOfRanksAndBytesGrowToWhatWasAsked) {
  Ranks ranks(3);
  const auto backend = MakeReferenceBackend();
  const auto rates =
      BenchCollective(ranks, *backend, /*threads=*/1, {.most_bytes = 4096, .block_s = 1e-6});
  ASSERT_TRUE(rates.ok());
  std::vector<std::string> rows;
  for (const CollectiveRate& rate : *rates)
    rows.push_back(rate.collective + " " + std::to_string(rate.ranks) + " " +
                   std::to_string(rate.bytes));
  EXPECT_THAT(rows,
              ::testing::ElementsAre("all_to_all 2 1024", "all_to_all 2 4096", "all_to_all 3 1024",
                                     "all_to_all 3 4096", "all_gather 2 1024", "all_gather 2 4096",
                                     "all_gather 3 1024", "all_gather 3 4096", "tree_sum 3 4096",
                                     "tree_sum_bf16 3 4096"));
  EXPECT_GT((ranks.seen[{512, 0}]), 0);  // the third takes no part
  EXPECT_GT((ranks.seen[{1365, 1365}]), 0);
}

TEST(BenchCollectiveTest, TheRateIsWhatARankSends) {
  const CollectiveRate rate = {"all_gather", 4, 4000, 0.5};
  EXPECT_DOUBLE_EQ(rate.bytes_per_s(), 6000);
  const CollectiveRate sum = {"tree_sum", 4, 4000, 0.5};
  EXPECT_DOUBLE_EQ(sum.bytes_per_s(), 12000);
}

}  // namespace
}  // namespace ridge
