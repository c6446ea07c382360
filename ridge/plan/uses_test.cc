#include "ridge/plan/uses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "ridge/plan/memory/placement.h"

namespace ridge {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAreArray;

constexpr int kPlans = 200;
constexpr int kVariables = 4;

// Nodes that read earlier values, write new ones, may overwrite operands and run in parallel
// regions; views of values; values that are written into variables; outputs.
class RandomPlan {
 public:
  explicit RandomPlan(uint32_t seed) : random_(seed) {
    for (int i = 0; i < kVariables; ++i) AddVariable(i);
    AddVariable(0);  // an input may be read whole and in slices
    const int nodes = 1 + Pick(20);
    for (int n = 0; n < nodes; ++n) {
      AddNode();
      if (Pick(3) == 0) AddView();
      if (Pick(6) == 0) EndRegion();
    }
    EndRegion();
    step.body.end = static_cast<int>(step.nodes.size());
    for (int i = Pick(3); i > 0; --i) step.outputs["y" + std::to_string(i)] = AnyValue();
    Shuffle();
  }

  StepPlan step;

 private:
  int Pick(int below) { return static_cast<int>(random_() % static_cast<uint32_t>(below)); }
  int AnyValue() { return Pick(static_cast<int>(step.values.size())); }

  int AddValue() {
    step.values.emplace_back();
    step.values.back().name = "v" + std::to_string(step.values.size());
    step.values.back().size_bytes = 64 * (1 + Pick(2));
    return static_cast<int>(step.values.size()) - 1;
  }

  void AddVariable(int index) {
    PlannedValue& value = step.values[static_cast<size_t>(AddValue())];
    value.persistent = true;
    value.persistent_index = index;
  }

  void AddNode() {
    PlannedNode node;
    for (int i = Pick(4); i > 0; --i) node.inputs.push_back(Pick(8) == 0 ? -1 : AnyValue());
    for (int k = 1 + Pick(2); k > 0; --k) {
      node.outputs.push_back(AddValue());
      if (Pick(8) == 0) AddWrite(node.outputs.back());
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (Pick(2) == 0)
        node.choice.in_place.emplace_back(Pick(static_cast<int>(node.outputs.size())),
                                          static_cast<int>(i));
    }
    step.nodes.push_back(std::move(node));
  }

  // Every other region is parallel; each of its nodes is a stream.
  void EndRegion() {
    const int first = step.body.parts.empty() ? 0 : step.body.parts.back().end;
    Region region = Region::Sequence(first, static_cast<int>(step.nodes.size()));
    if (step.body.parts.size() % 2 == 1) {
      region.kind = Region::Kind::kParallel;
      for (int n = first; n < region.end; ++n) region.parts.push_back(Region::Sequence(n, n + 1));
    }
    step.body.parts.push_back(region);
  }

  void AddWrite(int value) {
    step.values[static_cast<size_t>(value)].persistent = true;
    step.values[static_cast<size_t>(value)].persistent_index = Pick(kVariables);
  }

  void AddView() {
    const int source = AnyValue();
    const int view = AddValue();
    step.values[static_cast<size_t>(view)].size_bytes =
        step.values[static_cast<size_t>(source)].size_bytes;
    step.values[static_cast<size_t>(view)].shares_with = source;
  }

  // A value may share with one of a higher index.
  void Shuffle() {
    std::vector<int> to(step.values.size());
    std::iota(to.begin(), to.end(), 0);
    if (Pick(2) == 0) std::shuffle(to.begin(), to.end(), random_);
    const auto move = [&](int& value) {
      if (value >= 0) value = to[static_cast<size_t>(value)];
    };
    std::vector<PlannedValue> values(to.size());
    for (size_t v = 0; v < to.size(); ++v) {
      move(step.values[v].shares_with);
      values[static_cast<size_t>(to[v])] = step.values[v];
    }
    step.values = std::move(values);
    for (PlannedNode& node : step.nodes) {
      for (int& value : node.inputs) move(value);
      for (int& value : node.outputs) move(value);
    }
    for (auto& [name, value] : step.outputs) move(value);
  }

  std::mt19937 random_;
};

int ValueCount(const StepPlan& step) { return static_cast<int>(step.values.size()); }

int SourceOf(const StepPlan& step, int value) {
  return step.values[static_cast<size_t>(value)].shares_with;
}

int Root(const StepPlan& step, int value) {
  while (SourceOf(step, value) >= 0) value = SourceOf(step, value);
  return value;
}

std::vector<int> Sharers(const StepPlan& step, int value) {
  std::vector<int> all;
  for (int v = 0; v < ValueCount(step); ++v) {
    if (Root(step, v) == Root(step, value)) all.push_back(v);
  }
  return all;
}

int Producer(const StepPlan& step, int value) {
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    for (const int output : step.nodes[n].outputs) {
      if (output == value) return static_cast<int>(n);
    }
  }
  return -1;
}

std::vector<std::pair<int, int>> Reads(const StepPlan& step, int value) {
  std::vector<std::pair<int, int>> reads;
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    const std::vector<int>& inputs = step.nodes[n].inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == value) reads.emplace_back(n, i);
    }
  }
  return reads;
}

std::vector<std::pair<int, int>> Pairs(const std::vector<Read>& reads) {
  std::vector<std::pair<int, int>> pairs;
  for (const Read& read : reads) pairs.emplace_back(read.node, read.input);
  return pairs;
}

void ExpectShares(const StepPlan& step, const SharedBytes& bytes) {
  for (int v = 0; v < ValueCount(step); ++v) {
    const std::vector<int> sharers = Sharers(step, v);
    ASSERT_EQ(bytes.RootOf(v), Root(step, v));
    ASSERT_THAT(bytes.SharersOf(v), UnorderedElementsAreArray(sharers));
    ASSERT_EQ(bytes.SharersOf(v).front(), v);
    ASSERT_EQ(bytes.IsShared(v), sharers.size() > 1);
  }
}

void ExpectUses(const StepPlan& step, const StepUses& uses) {
  for (int v = 0; v < ValueCount(step); ++v) {
    ASSERT_EQ(uses.ProducerOf(v), Producer(step, v));
    ASSERT_EQ(Pairs(uses.ReadsOf(v)), Reads(step, v));
    int last = -1;
    for (const int sharer : Sharers(step, v)) last = std::max(last, Producer(step, sharer));
    ASSERT_EQ(uses.LastWriteTo(v), last);
  }
  ExpectShares(step, uses.bytes());
}

TEST(StepUses, EqualsASearchThroughAllNodes) {
  for (uint32_t seed = 0; seed < kPlans; ++seed) {
    StepPlan step = RandomPlan(seed).step;
    ASSERT_NO_FATAL_FAILURE(ExpectUses(step, StepUses(step))) << seed;
    ShareInPlace(MemorySpace(), step);
    ASSERT_NO_FATAL_FAILURE(ExpectUses(step, StepUses(step))) << seed;
  }
}

// Where no value shares with one that is added after it.
TEST(StepUses, AStepThatGrowsHasTheUsesOfTheWholeStep) {
  for (uint32_t seed = 0; seed < kPlans; ++seed) {
    const StepPlan whole = RandomPlan(seed).step;
    StepPlan step;
    StepUses uses;
    for (size_t v = 0; v < whole.values.size(); ++v) {
      step.values.push_back(whole.values[v]);
      if (whole.values[v].shares_with > static_cast<int>(v)) step.values.back().shares_with = -1;
      if (v % 3 == 0) uses.Extend(step);
    }
    for (const PlannedNode& node : whole.nodes) {
      step.nodes.push_back(node);
      uses.Extend(step);
    }
    ASSERT_NO_FATAL_FAILURE(ExpectUses(step, uses)) << seed;
  }
}

TEST(SharedBytes, ARootThatStartsToShareBringsItsSharers) {
  for (uint32_t seed = 0; seed < kPlans; ++seed) {
    StepPlan step = RandomPlan(seed).step;
    std::mt19937 random(seed);
    SharedBytes bytes(step);
    for (int i = 0; i < 10; ++i) {
      const int value = bytes.RootOf(static_cast<int>(random() % step.values.size()));
      const int with = static_cast<int>(random() % step.values.size());
      if (bytes.RootOf(with) == value) continue;
      bytes.Share(value, with);
      step.values[static_cast<size_t>(value)].shares_with = with;
      ASSERT_NO_FATAL_FAILURE(ExpectShares(step, bytes)) << seed;
    }
  }
}

// Placement gives all that share bytes one place, and apart from it only to values that are dead.
TEST(SharedBytes, ValuesThatShareHaveOneOffsetAndOthersAreApartWhileTheyLive) {
  for (uint32_t seed = 0; seed < kPlans; ++seed) {
    StepPlan step = RandomPlan(seed).step;
    ShareInPlace(MemorySpace(), step);
    Program program;
    program.persistent.resize(kVariables);
    PlaceValues(program, step);
    const SharedBytes bytes(step);
    for (int a = 0; a < ValueCount(step); ++a) {
      for (int b = 0; b < a; ++b) {
        const PlannedValue &x = step.values[static_cast<size_t>(a)],
                           &y = step.values[static_cast<size_t>(b)];
        const bool share = bytes.RootOf(a) == bytes.RootOf(b);
        ASSERT_TRUE(!share || x.offset_bytes == y.offset_bytes) << seed;
        const bool alive =
            std::max(x.live.first, y.live.first) <= std::min(x.live.last, y.live.last);
        if (share || x.persistent || y.persistent || !alive) continue;
        const auto end = [&](int v) {
          const auto root = static_cast<size_t>(bytes.RootOf(v));
          return step.values[root].offset_bytes + step.values[root].size_bytes;
        };
        ASSERT_TRUE(end(a) <= y.offset_bytes || end(b) <= x.offset_bytes) << seed;
      }
    }
  }
}

TEST(ShownValues, AViewShowsItsSourceAndAWrittenValueItself) {
  for (uint32_t seed = 0; seed < kPlans; ++seed) {
    StepPlan step = RandomPlan(seed).step;
    ShareInPlace(MemorySpace(), step);
    const std::vector<int> shown = ShownValues(step, StepUses(step));
    for (int v = 0; v < ValueCount(step); ++v) {
      int at = v;
      while (Producer(step, at) < 0 && SourceOf(step, at) >= 0) at = SourceOf(step, at);
      ASSERT_EQ(shown[static_cast<size_t>(v)], at) << seed;
    }
  }
}

TEST(VariableUses, EqualsASearchThroughAllValues) {
  for (uint32_t seed = 0; seed < kPlans; ++seed) {
    const StepPlan step = RandomPlan(seed).step;
    const VariableUses variables(step, StepUses(step), kVariables);
    bool any = false;
    for (int i = 0; i < kVariables; ++i) {
      int before = -1, writes = 0;
      for (int v = ValueCount(step); v-- > 0;) {
        const PlannedValue& value = step.values[static_cast<size_t>(v)];
        if (!value.persistent || value.persistent_index != i) continue;
        if (Producer(step, v) >= 0) {
          ++writes;
        } else {
          before = v;
        }
      }
      EXPECT_EQ(variables.Before(i), before) << seed;
      EXPECT_EQ(variables.Writes(i), writes) << seed;
      any = any || writes > 0;
    }
    EXPECT_EQ(variables.any_writes(), any) << seed;
  }
}

bool Touches(const PlannedNode& node, const std::set<int>& values) {
  const auto known = [&](int value) { return values.contains(value); };
  return std::any_of(node.inputs.begin(), node.inputs.end(), known) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), known);
}

bool RunTogether(const StepPlan& step, int a, int b) {
  return std::any_of(step.body.parts.begin(), step.body.parts.end(), [&](const Region& region) {
    return region.kind == Region::Kind::kParallel && region.Holds(a) && region.Holds(b);
  });
}

TEST(LiveRanges, CoverAllNodesThatTouchTheBytesAndTheirParallelRegions) {
  for (uint32_t seed = 0; seed < kPlans; ++seed) {
    StepPlan step = RandomPlan(seed).step;
    ShareInPlace(MemorySpace(), step);
    const std::vector<LiveRange> ranges = LiveRanges(step, SharedBytes(step));
    const int end = static_cast<int>(step.nodes.size());
    for (int v = 0; v < ValueCount(step); ++v) {
      if (Root(step, v) != v) continue;
      const std::vector<int> all = Sharers(step, v);
      const std::set<int> sharers(all.begin(), all.end());
      int first = end, last = -1;
      for (int n = 0; n < end; ++n) {
        if (!Touches(step.nodes[static_cast<size_t>(n)], sharers)) continue;
        for (int m = 0; m < end; ++m) {
          if (m == n || RunTogether(step, n, m))
            first = std::min(first, m), last = std::max(last, m);
        }
      }
      for (const auto& [name, value] : step.outputs) {
        if (sharers.contains(value)) first = std::min(first, end - 1), last = end - 1;
      }
      EXPECT_EQ(ranges[static_cast<size_t>(v)].first, first) << seed;
      EXPECT_EQ(ranges[static_cast<size_t>(v)].last, last) << seed;
    }
  }
}

// Chains of views are as long as a file makes them.
TEST(StepUses, TakesLinearTimeForALongChain) {
  constexpr int kLength = 200'000;
  StepPlan step;
  step.values.resize(kLength);
  for (int v = 0; v + 1 < kLength; ++v) step.values[static_cast<size_t>(v)].shares_with = v + 1;
  step.nodes.resize(1);
  step.nodes[0].outputs = {kLength - 1};
  const StepUses uses(step);
  EXPECT_EQ(uses.bytes().RootOf(0), kLength - 1);
  EXPECT_EQ(uses.LastWriteTo(0), 0);
  EXPECT_EQ(ShownValues(step, uses)[0], kLength - 1);
}

TEST(StepUses, AReadOfAViewIsNoReadOfItsSource) {
  StepPlan step;
  step.values.resize(2);
  step.values[1].shares_with = 0;
  step.nodes.resize(2);
  step.nodes[0].outputs = {0};
  step.nodes[1].inputs = {1, 1};
  const StepUses uses(step);
  EXPECT_TRUE(uses.ReadsOf(0).empty());
  EXPECT_THAT(Pairs(uses.ReadsOf(1)), ElementsAre(std::pair(1, 0), std::pair(1, 1)));
}

}  // namespace
}  // namespace ridge
