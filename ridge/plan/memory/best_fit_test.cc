#include "ridge/plan/memory/best_fit.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace ridge {
namespace {

constexpr BestFitBy kAll[] = {BestFitBy::kLength, BestFitBy::kSize, BestFitBy::kArea};

// By a sweep over time, so that large cases can be checked too: what begins must lie between its
// neighbours among those that live.
bool Overlaps(const std::vector<Buffer>& buffers, const Placement& placement) {
  std::multimap<int, std::pair<int, size_t>> events;  // step, (0: begins, 1: ends after it), buffer
  for (size_t b = 0; b < buffers.size(); ++b) {
    if (buffers[b].size_bytes == 0) continue;
    events.insert({2 * buffers[b].first, {0, b}});
    events.insert({2 * buffers[b].last + 1, {1, b}});
  }
  std::map<int64_t, int64_t> alive;  // offset -> end
  for (const auto& [step, event] : events) {
    const int64_t begin = placement.offsets[event.second];
    const int64_t end = begin + buffers[event.second].size_bytes;
    if (event.first == 1) {
      alive.erase(begin);
      continue;
    }
    const auto after = alive.lower_bound(begin);
    if (after != alive.end() && after->first < end) return true;
    if (after != alive.begin() && std::prev(after)->second > begin) return true;
    alive[begin] = end;
  }
  return false;
}

// A training step in the large: activations that nest, values that live for a moment, sizes that
// repeat as those of layers do.
std::vector<Buffer> TrainingStep(int nodes) {
  std::mt19937 random(3);
  std::vector<Buffer> buffers;
  for (int i = 0; i < nodes; ++i) {
    const int64_t size = 64 * static_cast<int64_t>(1 + random() % 50);
    buffers.push_back({size, i, 2 * nodes - i + static_cast<int>(random() % 4)});
    buffers.push_back({size, i, i + 1 + static_cast<int>(random() % 3)});
    buffers.push_back({size, 2 * nodes - i, 2 * nodes - i + 1 + static_cast<int>(random() % 3)});
  }
  return buffers;
}

TEST(BestFit, NoTwoLiveBuffersShareAByteInRandomPlans) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<Buffer> buffers;
    const auto count = static_cast<uint32_t>(1 + random() % 80);
    for (uint32_t i = 0; i < count; ++i) {
      const int first = static_cast<int>(random() % 30);
      buffers.push_back({64 * static_cast<int64_t>(random() % 20), first,
                         first + static_cast<int>(random() % 9)});
    }
    for (const BestFitBy by : kAll) {
      const Placement placement = PlaceBestFit(buffers, by);
      EXPECT_FALSE(Overlaps(buffers, placement));
      EXPECT_GE(placement.peak_bytes, LiveBound(buffers));
      for (int64_t offset : placement.offsets) EXPECT_GE(offset, 0);
    }
  }
}

TEST(BestFit, NothingAndEmptyBuffersNeedNothing) {
  EXPECT_EQ(PlaceBestFit({}, BestFitBy::kLength).peak_bytes, 0);
  const Placement placement = PlaceBestFit({{0, 3, 5}, {0, 4, 4}}, BestFitBy::kSize);
  EXPECT_EQ(placement.peak_bytes, 0);
  EXPECT_EQ(placement.offsets, (std::vector<int64_t>{0, 0}));
}

TEST(BestFit, PutsTheShortOneIntoTheGapBesideTheLongOne) {
  // The long one covers all steps; the others follow each other above it.
  const std::vector<Buffer> buffers = {{64, 0, 9}, {128, 0, 4}, {128, 5, 9}};
  const Placement placement = PlaceBestFit(buffers, BestFitBy::kLength);
  EXPECT_EQ(placement.offsets, (std::vector<int64_t>{0, 64, 64}));
}

TEST(BestFit, SameBuffersSameOffsets) {
  const std::vector<Buffer> buffers = TrainingStep(500);
  EXPECT_EQ(PlaceBestFit(buffers, BestFitBy::kArea).offsets,
            PlaceBestFit(buffers, BestFitBy::kArea).offsets);
}

TEST(BestFit, LargeTrainingStepsStayWithinThreePercentOfTheBound) {
  const std::vector<Buffer> buffers = TrainingStep(20'000);
  const Placement placement = PlaceBuffers(buffers);
  EXPECT_FALSE(Overlaps(buffers, placement));
  EXPECT_LE(static_cast<double>(placement.peak_bytes),
            1.03 * static_cast<double>(LiveBound(buffers)));
}

}  // namespace
}  // namespace ridge
