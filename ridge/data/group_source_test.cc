// The laws: an epoch has each group's share exactly; all samples of a group come before one comes
// again; a draw is a function of (seed, epoch, index); memory is counted once.
#include "ridge/data/group_source.h"

#include <map>
#include <numeric>

#include "ridge/data/subset.h"
#include "ridge/data/test_files.h"

namespace ridge {
namespace {

constexpr int32_t kNone = GroupSource::kNoGroup;

// 24 samples in groups of 17, 4 and 2; the last one has none.
std::vector<int32_t> Groups() {
  std::vector<int32_t> groups(24, 0);
  for (const size_t i : {3, 8, 11, 20}) groups[i] = 1;
  for (const size_t i : {0, 22}) groups[i] = 2;
  groups[23] = kNone;
  return groups;
}

std::shared_ptr<const GroupSource> Drawn(const std::vector<double>& shares, uint64_t seed = 5) {
  return GroupSource::Create(CountingSource(24), Groups(), shares, seed);
}

std::vector<int64_t> EpochOf(const GroupSource& source, int64_t epoch) {
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < source.size(); ++i) samples.push_back(source.SampleOf({i, epoch}));
  return samples;
}

TEST(GroupSource, AnEpochHasTheSharesOfTheGroups) {
  const std::map<std::vector<double>, std::vector<int64_t>> counts = {
      {{1, 1, 1}, {8, 8, 8}}, {{1, 0, 3}, {6, 0, 18}}, {{0, 0.5, 0}, {0, 24, 0}}};
  for (const auto& [shares, want] : counts) {
    const auto source = Drawn(shares);
    EXPECT_EQ(source->size(), 24);
    for (int64_t epoch = 0; epoch < 5; ++epoch) {
      std::vector<int64_t> drawn(3, 0);
      for (const int64_t sample : EpochOf(*source, epoch)) {
        const int32_t group = Groups()[static_cast<size_t>(sample)];
        ASSERT_NE(group, kNone);
        ++drawn[static_cast<size_t>(group)];
      }
      EXPECT_EQ(drawn, want);
    }
  }
}

TEST(GroupSource, AllSamplesOfAGroupComeBeforeOneComesAgain) {
  const auto source = Drawn({1, 1, 1});
  std::vector<int64_t> times(24, 0);
  for (int64_t epoch = 0; epoch < 30; ++epoch) {
    for (const int64_t sample : EpochOf(*source, epoch)) ++times[static_cast<size_t>(sample)];
    for (int32_t group = 0; group < 3; ++group) {
      int64_t least = 1000, most = 0;
      for (size_t i = 0; i < times.size(); ++i) {
        if (Groups()[i] != group) continue;
        least = std::min(least, times[i]);
        most = std::max(most, times[i]);
      }
      EXPECT_LE(most - least, 1) << "group " << group << " epoch " << epoch;
    }
  }
}

TEST(GroupSource, DrawsAreAFunctionOfSeedEpochAndIndex) {
  EXPECT_EQ(EpochOf(*Drawn({1, 1, 1}), 7), EpochOf(*Drawn({1, 1, 1}), 7));
  EXPECT_NE(EpochOf(*Drawn({1, 1, 1}), 7), EpochOf(*Drawn({1, 1, 1}), 8));
  EXPECT_NE(EpochOf(*Drawn({1, 1, 1}, /*seed=*/6), 7), EpochOf(*Drawn({1, 1, 1}), 7));
}

TEST(GroupSource, ReadsTheSampleThatItNames) {
  const auto source = Drawn({1, 2, 1});
  for (int64_t i = 0; i < source->size(); ++i) {
    const SampleAt at{i, /*epoch=*/3};
    uint8_t label = 255;
    ASSERT_TRUE(source->Read(at, 1, {}, &label).ok());
    EXPECT_EQ(label, source->SampleOf(at) % 10);
    EXPECT_EQ(source->OriginAt(at), CountingSource(24)->Origin(source->SampleOf(at)));
  }
}

TEST(GroupSource, CountsSharedMemoryOnce) {
  const SourcePtr all = CountingSource(30);
  const SourcePtr part = std::make_shared<SubsetSource>(all, 0, 24);
  const SourcePtr rest = std::make_shared<SubsetSource>(all, 24, 6);
  const auto alone = GroupSource::Create(part, Groups(), {1, 1, 1}, 1);
  EXPECT_EQ(alone->resident_bytes(), all->resident_bytes() + 23 * 4);
  const SourcePtr beside = GroupSource::Create(part, Groups(), {1, 1, 1}, 1, {rest, nullptr});
  EXPECT_EQ(ResidentBytes({beside, rest}), all->resident_bytes() + 23 * 4);
}

TEST(GroupSource, IsNullWhereNothingCanBeDrawn) {
  EXPECT_EQ(GroupSource::Create(CountingSource(24), Groups(), {0, 0, 0}, 1), nullptr);
  const std::vector<int32_t> none(24, kNone);
  EXPECT_EQ(GroupSource::Create(CountingSource(24), none, {1, 1, 1}, 1), nullptr);
}

}  // namespace
}  // namespace ridge
