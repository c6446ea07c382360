#include "ridge/plan/memory/exact_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>

#include "ridge/core/files.h"

namespace ridge {
namespace {

bool LiveTogether(const Buffer& a, const Buffer& b) {
  return a.first <= b.last && b.first <= a.last && a.size_bytes > 0 && b.size_bytes > 0;
}

void ExpectValid(const std::vector<Buffer>& buffers, const Placement& placement, int64_t limit) {
  EXPECT_LE(placement.peak_bytes, limit);
  for (size_t a = 0; a < buffers.size(); ++a) {
    const int64_t end = placement.offsets[a] + buffers[a].size_bytes;
    EXPECT_GE(placement.offsets[a], 0);
    EXPECT_LE(end, placement.peak_bytes);
    for (size_t b = 0; b < a; ++b) {
      if (!LiveTogether(buffers[a], buffers[b])) continue;
      EXPECT_TRUE(end <= placement.offsets[b] ||
                  placement.offsets[b] + buffers[b].size_bytes <= placement.offsets[a])
          << a << " and " << b;
    }
  }
}

// The least peak over all orders of laying each buffer on top of those that it lives with: sorted
// by offset, every placement is such an order.
int64_t LeastPeak(const std::vector<Buffer>& buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  int64_t least = INT64_MAX;
  do {
    std::vector<int64_t> top(buffers.size(), 0);
    int64_t peak = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      int64_t offset = 0;
      for (size_t j = 0; j < i; ++j) {
        if (LiveTogether(buffers[order[i]], buffers[order[j]]))
          offset = std::max(offset, top[order[j]]);
      }
      top[order[i]] = offset + buffers[order[i]].size_bytes;
      peak = std::max(peak, top[order[i]]);
    }
    least = std::min(least, peak);
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

std::vector<Buffer> Draw(std::mt19937& random, int count) {
  std::vector<Buffer> buffers;
  for (int i = 0; i < count; ++i) {
    const int first = static_cast<int>(random() % 8);
    buffers.push_back(
        {static_cast<int64_t>(random() % 9), first, first + static_cast<int>(random() % 4)});
  }
  return buffers;
}

std::vector<Buffer> Read(const std::string& name) {
  const std::string path =
      std::string(std::getenv("RIDGE_SOURCE_DIR")) + "/tests/minimalloc/" + name + ".1048576.csv";
  const std::string text = *ReadFile(path);
  std::vector<Buffer> buffers;
  for (size_t at = text.find('\n') + 1; at < text.size(); at = text.find('\n', at) + 1) {
    int id = 0, lower = 0, upper = 0, size = 0;
    EXPECT_EQ(std::sscanf(text.c_str() + at, "%d,%d,%d,%d", &id, &lower, &upper, &size), 4);
    buffers.push_back({size, lower, upper - 1});
  }
  return buffers;
}

TEST(ExactFit, PlacesInTheLeastBytesAndProvesThatFewerDoNotDo) {
  std::mt19937 random(5);
  for (int round = 0; round < 400; ++round) {
    const std::vector<Buffer> buffers = Draw(random, 1 + static_cast<int>(random() % 7));
    const int64_t least = LeastPeak(buffers);
    const FitResult fit = PlaceWithin(buffers, least, 1'000'000);
    ASSERT_EQ(fit.end, FitEnd::kPlaced);
    ExpectValid(buffers, fit.placement, least);
    if (least > 0) {
      EXPECT_EQ(PlaceWithin(buffers, least - 1, 1'000'000).end, FitEnd::kImpossible);
    }
  }
}

TEST(ExactFit, GivesUpWhenItsNodesAreUsedUp) {
  const std::vector<Buffer> buffers = Read("K");
  const FitResult fit = PlaceWithin(buffers, 1'048'576, 700);
  EXPECT_EQ(fit.end, FitEnd::kGaveUp);
  EXPECT_EQ(fit.nodes, 700);
}

TEST(ExactFit, SameBuffersSameOffsets) {
  const std::vector<Buffer> buffers = Read("J");
  EXPECT_EQ(PlaceWithin(buffers, 1'048'576, 10'000).placement.offsets,
            PlaceWithin(buffers, 1'048'576, 10'000).placement.offsets);
}

#ifdef RIDGE_SANITIZED_MEMORY
constexpr const char* kInstances[] = {"C", "D", "J", "K"};
#else
constexpr const char* kInstances[] = {"A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K"};
#endif

TEST(ExactFit, PlacesTheHardInstancesOfMiniMalloc) {
  for (const char* name : kInstances) {
    SCOPED_TRACE(name);
    const std::vector<Buffer> buffers = Read(name);
    const FitResult fit = PlaceWithin(buffers, 1'048'576, 200'000);
    ASSERT_EQ(fit.end, FitEnd::kPlaced);
    ExpectValid(buffers, fit.placement, 1'048'576);
  }
}

}  // namespace
}  // namespace ridge
