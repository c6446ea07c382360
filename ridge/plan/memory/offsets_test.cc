#include "ridge/plan/memory/offsets.h"

#include <gtest/gtest.h>

#include <random>

namespace ridge {
namespace {

void ExpectNoOverlap(const std::vector<Buffer>& buffers, const Placement& placement) {
  for (size_t a = 0; a < buffers.size(); ++a) {
    for (size_t b = a + 1; b < buffers.size(); ++b) {
      const bool same_time =
          buffers[a].first <= buffers[b].last && buffers[b].first <= buffers[a].last;
      const bool same_bytes = placement.offsets[a] < placement.offsets[b] + buffers[b].size_bytes &&
                              placement.offsets[b] < placement.offsets[a] + buffers[a].size_bytes;
      EXPECT_FALSE(same_time && same_bytes) << a << " and " << b;
    }
  }
}

TEST(Offsets, ChainNeedsTwoBuffers) {
  const std::vector<Buffer> chain = {{64, 0, 1}, {64, 1, 2}, {64, 2, 3}, {64, 3, 4}};
  const Placement placement = PlaceBuffers(chain);
  EXPECT_EQ(placement.peak_bytes, 128);
  ExpectNoOverlap(chain, placement);
}

TEST(Offsets, NothingNeedsNothing) {
  const Placement placement = PlaceBuffers({});
  EXPECT_TRUE(placement.offsets.empty());
  EXPECT_EQ(LiveBound({}), 0);
}

TEST(Offsets, BoundIsTheLargestLiveSumAndSaysWhere) {
  int step = -1;
  EXPECT_EQ(LiveBound({{100, 0, 2}, {50, 2, 3}, {60, 3, 9}}, &step), 150);
  EXPECT_EQ(step, 2);
}

TEST(Offsets, NoTwoLiveBuffersShareAByteInRandomPlans) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Buffer> buffers;
    for (int i = 0; i < 40; ++i) {
      const int first = static_cast<int>(random() % 30);
      buffers.push_back({64 * static_cast<int64_t>(1 + random() % 20), first,
                         first + static_cast<int>(random() % 8)});
    }
    const Placement placement = PlaceBuffers(buffers);
    ExpectNoOverlap(buffers, placement);
    EXPECT_GE(placement.peak_bytes, LiveBound(buffers));
    EXPECT_LE(static_cast<double>(placement.peak_bytes),
              1.15 * static_cast<double>(LiveBound(buffers)));
  }
}

TEST(Offsets, BackwardPassNestsInForwardPassAtTheBound) {
  // Activations of a chain are read again in reverse order, as a training step does.
  std::vector<Buffer> buffers;
  for (int i = 0; i < 50; ++i) buffers.push_back({64 * (1 + (i * 37) % 11), i, 100 - i});
  for (int i = 0; i < 50; ++i) buffers.push_back({64 * (1 + (i * 17) % 7), 50 + i, 51 + i});
  const Placement placement = PlaceBuffers(buffers);
  ExpectNoOverlap(buffers, placement);
  EXPECT_EQ(placement.peak_bytes, LiveBound(buffers));
}

}  // namespace
}  // namespace ridge
