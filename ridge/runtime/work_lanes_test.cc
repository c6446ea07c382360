// WorkLanes: what conflicts keeps its order, whatever else runs at once.
#include "ridge/runtime/work_lanes.h"

#include <gtest/gtest.h>

#include <random>

namespace ridge {
namespace {

class WorkLanesTest : public ::testing::Test {
 protected:
  std::span<const std::byte> At(size_t begin, size_t end) const {
    return std::span<const std::byte>(bytes_).subspan(begin, end - begin);
  }
  std::vector<std::byte> bytes_ = std::vector<std::byte>(1000);
};

using Works = std::vector<int>;

TEST_F(WorkLanesTest, ReadersOfOneResultRunAtOnceAndTheNextWriterBehindThem) {
  WorkLanes lanes(3);
  EXPECT_EQ(lanes.Add({{}, {At(0, 10)}}), Works({}));
  EXPECT_EQ(lanes.Add({{At(0, 10)}, {At(10, 20)}}), Works({0}));
  EXPECT_EQ(lanes.Add({{At(0, 10)}, {At(20, 30)}}), Works({0}));
  EXPECT_EQ(lanes.Add({{}, {At(5, 6)}}), Works({1, 2}));
  EXPECT_EQ(lanes.Tails(), Works({3}));
}

TEST_F(WorkLanesTest, WhatIsImpliedIsLeftOut) {
  WorkLanes lanes(4);
  lanes.Add({{}, {At(0, 10)}});
  lanes.Add({{At(0, 10)}, {At(10, 20)}});
  EXPECT_EQ(lanes.Add({{At(0, 10), At(10, 20)}, {At(20, 30)}}), Works({1}));
}

TEST_F(WorkLanesTest, OneLaneKeepsTheOrder) {
  WorkLanes lanes(1);
  for (size_t i = 0; i < 5; ++i)
    EXPECT_EQ(lanes.Add({{}, {At(i, i + 1)}}),
              i == 0 ? Works({}) : Works({static_cast<int>(i) - 1}));
}

TEST_F(WorkLanesTest, WorkWithoutBytesWaitsForNothing) {
  WorkLanes lanes(2);
  lanes.Add({{}, {At(0, 10)}});
  EXPECT_EQ(lanes.Add({{At(3, 3)}, {At(4, 4)}}), Works({}));
}

bool Overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

bool AnyOverlap(const std::vector<std::span<const std::byte>>& a,
                const std::vector<std::span<const std::byte>>& b) {
  for (const auto x : a) {
    for (const auto y : b) {
      if (Overlap(x, y)) return true;
    }
  }
  return false;
}

// Whether `later` cannot run before `earlier`.
bool Conflict(const MemoryUse& earlier, const MemoryUse& later) {
  return AnyOverlap(earlier.writes, later.reads) || AnyOverlap(earlier.writes, later.writes) ||
         AnyOverlap(earlier.reads, later.writes);
}

TEST_F(WorkLanesTest, ConflictsAreOrderedInRandomWork) {
  std::mt19937 draw(7);
  int waits = 0;
  for (int round = 0; round < 200; ++round) {
    WorkLanes lanes(1 + static_cast<int>(draw() % 6));
    std::vector<MemoryUse> uses;
    std::vector<std::vector<bool>> before;  // by work: all that it runs behind
    for (size_t n = 0; n < 40; ++n) {
      MemoryUse use;
      for (auto* ranges : {&use.reads, &use.writes}) {
        for (auto k = draw() % 3; k > 0; --k) {
          const size_t begin = draw() % 900;
          ranges->push_back(At(begin, begin + 1 + draw() % 100));
        }
      }
      std::vector<bool> all(n, false);
      for (const int work : lanes.Add(use)) {
        const auto w = static_cast<size_t>(work);
        ASSERT_LT(w, n);
        all[w] = true;
        for (size_t i = 0; i < w; ++i) all[i] = all[i] || before[w][i];
      }
      for (size_t i = 0; i < n; ++i) {
        if (!Conflict(uses[i], use)) continue;
        ASSERT_TRUE(all[i]) << "round " << round << ": " << n << " does not wait for " << i;
        ++waits;
      }
      uses.push_back(std::move(use));
      before.push_back(std::move(all));
    }
  }
  EXPECT_GT(waits, 10000);
}

}  // namespace
}  // namespace ridge
