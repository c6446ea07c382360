#include "ridge/partition/part_runs.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

const Mesh kMesh{{{"d", 2}, {"t", 3}}};
constexpr int kD = 0, kT = 1;

Split Of(std::initializer_list<Cut> cuts) {
  Split split;
  for (const Cut& cut : cuts) split.Add(cut);
  return split;
}

// Dimensions, and how they are cut.
const std::vector<std::pair<Dims, Split>> kCases = {
    {{}, {}},
    {{12}, {}},
    {{12}, Of({{0, kD, 1}})},
    {{18}, Of({{0, kT, 3}})},
    {{12, 6}, Of({{0, kD, 1}, {1, kT, 1}})},
    {{4, 6, 5}, Of({{1, kD, 3}})},
    {{4, 6, 5}, Of({{1, kT, 1}})},
    {{36}, Of({{0, kD, 1}, {0, kT, 6}})},
    {{36}, Of({{0, kT, 1}, {0, kD, 3}})},
    {{2, 36, 2}, Of({{0, kD, 1}, {1, kT, 4}})},
};

TEST(PartRuns, AreThePlacesOfThePart) {
  for (const auto& [dims, split] : kCases) {
    for (int64_t device = 0; device < kMesh.devices(); ++device) {
      const PartRuns runs(dims, split, {kMesh, device});
      const std::vector<int64_t> places =
          PlacesOfPart(dims, split, kMesh, kMesh.CoordinatesOf(device));
      ASSERT_EQ(runs.elements(), static_cast<int64_t>(places.size()));
      std::vector<int64_t> found;
      runs.ForEachWithin(0, ElementCount(dims), [&](int64_t whole, int64_t part, int64_t count) {
        EXPECT_EQ(part, static_cast<int64_t>(found.size()));
        for (int64_t i = 0; i < count; ++i) found.push_back(whole + i);
      });
      EXPECT_EQ(found, places) << SplitText(split, static_cast<int>(dims.size()), kMesh);
    }
  }
}

TEST(PartRuns, OfARangeOfTheWholeAreNeighboursInThePart) {
  for (const auto& [dims, split] : kCases) {
    const PartRuns runs(dims, split, {kMesh, 4});
    const std::vector<int64_t> places = PlacesOfPart(dims, split, kMesh, kMesh.CoordinatesOf(4));
    for (int64_t begin = 0; begin <= ElementCount(dims); ++begin) {
      for (int64_t end = begin; end <= ElementCount(dims); ++end) {
        const auto first = std::lower_bound(places.begin(), places.end(), begin);
        const auto last = std::lower_bound(places.begin(), places.end(), end);
        EXPECT_EQ(runs.FirstFrom(begin), first - places.begin());
        EXPECT_EQ(runs.CountWithin(begin, end), last - first);
        int64_t count = 0;
        runs.ForEachWithin(begin, end, [&](int64_t whole, int64_t part, int64_t n) {
          EXPECT_EQ(whole, places[static_cast<size_t>(part)]);
          count += n;
        });
        EXPECT_EQ(count, last - first);
      }
    }
  }
}

}  // namespace
}  // namespace ridge
