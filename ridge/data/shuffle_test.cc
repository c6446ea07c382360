#include "ridge/data/shuffle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "ridge/data/batch.h"
#include "ridge/data/repeat.h"
#include "ridge/data/sequence.h"

namespace ridge {
namespace {

std::vector<int64_t> OrderOf(int64_t size, uint64_t seed, int64_t epoch) {
  ShuffleStage stage(std::make_unique<SequenceStage>(size), seed);
  stage.Seek(epoch, 0);
  std::vector<int64_t> order;
  Element element;
  while (stage.Next(element)) {
    EXPECT_EQ(element.epoch, epoch);
    EXPECT_EQ(element.index, static_cast<int64_t>(order.size()));
    order.push_back(element.samples.at(0));
  }
  return order;
}

TEST(Shuffle, GivesEachSampleOnce) {
  for (int64_t size : {1, 2, 3, 7, 100, 101, 1024, 60000}) {
    std::vector<int64_t> order = OrderOf(size, 5, 3);
    std::sort(order.begin(), order.end());
    std::vector<int64_t> all(static_cast<size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(order, all) << size;
  }
}

TEST(Shuffle, IsABijectionAtTheEndsOfALargeRange) {
  const Permutation order(int64_t{1} << 48, 1, 2, 3);
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 1000; ++i) {
    for (int64_t at : {order.At(i), order.At((int64_t{1} << 48) - 1 - i)}) {
      EXPECT_TRUE(at >= 0 && at < int64_t{1} << 48);
      seen.insert(at);
    }
  }
  EXPECT_EQ(seen.size(), 2000U);
}

TEST(Shuffle, DiffersByEpochAndSeed) {
  for (int64_t size : {20, 60000}) {
    EXPECT_EQ(OrderOf(size, 5, 3), OrderOf(size, 5, 3));
    EXPECT_NE(OrderOf(size, 5, 3), OrderOf(size, 5, 4));
    EXPECT_NE(OrderOf(size, 5, 3), OrderOf(size, 6, 3));
    EXPECT_NE(OrderOf(size, 5, 3), OrderOf(size, 5 + (uint64_t{1} << 40), 3));
  }
}

TEST(Shuffle, ReachesEveryOrderOfAFewSamples) {
  const std::vector<std::pair<int64_t, size_t>> orders_of = {
      {1, 1}, {2, 2}, {3, 6}, {4, 24}, {5, 120}};
  for (const auto& [size, expected] : orders_of) {
    std::set<std::vector<int64_t>> orders;
    for (int64_t epoch = 0; epoch < 4000; ++epoch) orders.insert(OrderOf(size, 0, epoch));
    EXPECT_EQ(orders.size(), expected) << size;
  }
}

// With 60,000 samples in batches of 100, the numbers of a batch are as spread as those of a fair
// draw: the mean of a batch has a standard deviation of 1,732 (uniform, without replacement).
TEST(Shuffle, SpreadsEachBatchOverTheData) {
  const std::vector<int64_t> order = OrderOf(60000, 1, 0);
  double squares = 0;
  for (size_t batch = 0; batch < 600; ++batch) {
    double sum = 0;
    for (size_t i = 0; i < 100; ++i) sum += static_cast<double>(order[batch * 100 + i]);
    squares += (sum / 100 - 29999.5) * (sum / 100 - 29999.5);
  }
  const double deviation = std::sqrt(squares / 600);
  EXPECT_NEAR(deviation, 1732, 170);  // 600 batches: 10 % are 3.5 standard errors
}

// Neighbours don't stay neighbours: of 59,999 pairs a fair shuffle leaves 2 on average.
TEST(Shuffle, PartsNeighbours) {
  const std::vector<int64_t> order = OrderOf(60000, 2, 0);
  int64_t still = 0;
  for (size_t i = 1; i < order.size(); ++i) still += std::abs(order[i] - order[i - 1]) == 1;
  EXPECT_LT(still, 12);
}

// The order is part of what makes a run repeatable: it may never change.
TEST(Shuffle, KeepsItsPublishedOrder) {
  EXPECT_EQ(OrderOf(10, 0, 0), (std::vector<int64_t>{3, 6, 5, 4, 8, 1, 0, 7, 2, 9}));
  EXPECT_EQ(OrderOf(10, 1, 2), (std::vector<int64_t>{9, 6, 0, 4, 2, 7, 8, 3, 5, 1}));
}

class StackTest : public testing::Test {
 protected:
  static std::unique_ptr<Stage> Stack(int64_t samples, int64_t batch, bool drop_last,
                                      int64_t epochs) {
    std::unique_ptr<Stage> stage = std::make_unique<SequenceStage>(samples);
    stage = std::make_unique<ShuffleStage>(std::move(stage), 11);
    stage = std::make_unique<BatchStage>(std::move(stage), batch, drop_last);
    return std::make_unique<RepeatStage>(std::move(stage), epochs);
  }
  // "epoch.index: samples" of at most `limit` elements.
  static std::vector<std::vector<int64_t>> Rest(Stage& stage, size_t limit = 1000) {
    std::vector<std::vector<int64_t>> rest;
    Element element;
    while (rest.size() < limit && stage.Next(element)) {
      rest.push_back({element.epoch, element.index});
      rest.back().insert(rest.back().end(), element.samples.begin(), element.samples.end());
    }
    return rest;
  }
};

TEST_F(StackTest, DropsOrKeepsTheShortBatch) {
  EXPECT_EQ(Stack(10, 4, true, 1)->size(), 2);
  EXPECT_EQ(Stack(10, 4, false, 1)->size(), 3);
  EXPECT_EQ(Stack(8, 4, false, 1)->size(), 2);
  const auto rest = Rest(*Stack(10, 4, false, 1));
  ASSERT_EQ(rest.size(), 3U);
  EXPECT_EQ(rest[2].size(), 2U + 2U);
  EXPECT_EQ(BatchStage(std::make_unique<SequenceStage>(10), 4, true).dropped(), 2);
  EXPECT_EQ(BatchStage(std::make_unique<SequenceStage>(10), 4, false).dropped(), 0);
}

TEST_F(StackTest, RepeatsTheEpochsAskedFor) {
  EXPECT_EQ(Rest(*Stack(10, 4, true, 3)).size(), 6U);
  EXPECT_EQ(Rest(*Stack(10, 4, true, 0)).size(), 0U);
  EXPECT_EQ(Rest(*Stack(10, 4, true, RepeatStage::kForever), 50).size(), 50U);
}

TEST_F(StackTest, GoesOnFromEveryPositionAsIfItHadComeThere) {
  for (bool drop_last : {true, false}) {
    const auto all = Rest(*Stack(10, 4, drop_last, 3));
    for (size_t at = 0; at < all.size(); ++at) {
      const auto stage = Stack(10, 4, drop_last, 3);
      stage->Seek(all[at][0], all[at][1]);
      const std::vector<std::vector<int64_t>> expected(all.begin() + static_cast<int64_t>(at),
                                                       all.end());
      EXPECT_EQ(Rest(*stage), expected) << at;
    }
  }
}

TEST_F(StackTest, ShufflesBatchesWhenItStandsAfterThem) {
  std::unique_ptr<Stage> stage = std::make_unique<SequenceStage>(12);
  stage = std::make_unique<BatchStage>(std::move(stage), 3, true);
  ShuffleStage shuffled(std::move(stage), 1);
  std::set<int64_t> first_samples;
  for (const auto& batch : Rest(shuffled)) {
    EXPECT_EQ(batch[3], batch[2] + 1);
    EXPECT_EQ(batch[4], batch[2] + 2);
    first_samples.insert(batch[2]);
  }
  EXPECT_EQ(first_samples, (std::set<int64_t>{0, 3, 6, 9}));
}

}  // namespace
}  // namespace ridge
