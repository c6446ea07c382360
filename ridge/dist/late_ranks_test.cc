#include "ridge/dist/late_ranks.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

constexpr char kName[] = "all_reduce 'train'";

// Three ranks of which rank 0 looks, once a second, with a limit of 5 s.
class LateRanksTest : public ::testing::Test {
 protected:
  LateRanksTest() {
    for (size_t rank = 0; rank < lines_.size(); ++rank) {
      lines_[rank].place = kInside;
      lines_[rank].doing = {RankWork::kStep, /*step=*/11, /*planned_s=*/0.02};
      lines_[rank].process = 100 + static_cast<int64_t>(rank);
    }
    Beat({0, 1, 2});
    (void)Look();
  }

  void Beat(std::initializer_list<size_t> ranks) {
    for (const size_t rank : ranks) ++lines_[rank].beats;
  }
  std::optional<WaitingFor> Look(double elapsed_s = 1) {
    return late_.Look(lines_, elapsed_s, kName, bytes_);
  }
  // The first text of so many seconds in which these ranks beat, and rank 1 works on a core.
  std::string Within(int seconds, std::initializer_list<size_t> beating, double works = 1) {
    for (int i = 0; i < seconds; ++i) {
      Beat(beating);
      lines_[1].worked_s += works;
      if (const auto waiting = Look()) return (waiting->ends ? "" : "note: ") + waiting->text;
    }
    return "";
  }

  static constexpr uint64_t kInside = 293, kBehind = 292;
  std::vector<RankLine> lines_{3};
  int64_t bytes_ = 1000;
  LateRanks late_{/*own=*/0, /*ranks=*/3, /*limit_s=*/5};
};

TEST_F(LateRanksTest, NamesARankThatDoesNotRun) {
  lines_[1].place = kBehind;
  EXPECT_EQ(Within(4, {0, 2}), "");
  EXPECT_EQ(Within(1, {0, 2}),
            "waited 5.0 s in all_reduce 'train' (step 12, collective 147); rank 1 is late: at "
            "collective 146, its process 101 does not run (no heartbeat for 5.0 s)");
}

TEST_F(LateRanksTest, NamesARankThatStoppedInsideOfTheExchange) {
  EXPECT_EQ(Within(5, {0, 1}),
            "waited 5.0 s in all_reduce 'train' (step 12, collective 147); rank 2 is late: at "
            "collective 147, its process 102 does not run (no heartbeat for 5.0 s)");
}

TEST_F(LateRanksTest, NamesARankThatComputesForEver) {
  lines_[1].place = kBehind;
  EXPECT_EQ(Within(5, {0, 1, 2}), "");  // the first look saw it come to where it is
  EXPECT_EQ(Within(1, {0, 1, 2}),
            "waited 6.0 s in all_reduce 'train' (step 12, collective 147); rank 1 is late: at "
            "collective 146, its process 101 runs, but has not reached the collective (it computes "
            "step 12 for 5.0 s; planned 0.02 s)");
}

TEST_F(LateRanksTest, GivesAStepTenTimesItsPlan) {
  lines_[1].place = kBehind;
  lines_[1].doing.planned_s = 2;
  EXPECT_EQ(Within(20, {0, 1, 2}), "");
  EXPECT_NE(Within(1, {0, 1, 2}), "");
}

TEST_F(LateRanksTest, GivesARankWithoutACoreTenTimesAsLong) {
  lines_[1].place = kBehind;
  EXPECT_EQ(Within(50, {0, 1, 2}, /*works=*/0.01), "");
  EXPECT_NE(Within(1, {0, 1, 2}, /*works=*/0.01), "");
}

TEST_F(LateRanksTest, WaitsForWorkThatNobodyPlannedAndSaysSo) {
  for (const auto& [work, text] :
       {std::pair(RankWork::kCheckpoint, "writes a checkpoint"),
        std::pair(RankWork::kBetweenSteps, "reads its next batch, or reports"),
        std::pair(RankWork::kEvaluation, "evaluates"),
        std::pair(RankWork::kStart, "loads data and plans")}) {
    lines_[0].place += 2;
    lines_[1].doing.work = work;
    (void)Look();
    EXPECT_EQ(Within(59, {0, 1, 2}), "");
    EXPECT_EQ(Within(1, {0, 1, 2}),
              std::string("note: waited 60.0 s in all_reduce 'train' (step 12, collective ") +
                  std::to_string(lines_[0].collective()) + "); it waits for rank 1, which " + text);
    EXPECT_EQ(Within(59, {0, 1, 2}), "");
    EXPECT_NE(Within(1, {0, 1, 2}), "");
    EXPECT_EQ(Within(3600, {0, 1, 2}).substr(0, 18), "note: waited 240.0");
  }
}

TEST_F(LateRanksTest, SaysThatBytesDoNotArrive) {
  EXPECT_EQ(Within(5, {0, 1, 2}),
            "waited 5.0 s in all_reduce 'train' (step 12, collective 147); all 3 ranks are inside "
            "it: the transport does not progress");
}

TEST_F(LateRanksTest, GivesManyBytesTheTimeOfASlowNetwork) {
  bytes_ = 220'000'000;
  EXPECT_EQ(Within(19, {0, 1, 2}), "");
  EXPECT_NE(Within(1, {0, 1, 2}), "");
}

TEST_F(LateRanksTest, BlamesNobodyAfterTheMachineSlept) {
  lines_[1].place = kBehind;
  EXPECT_FALSE(Look(/*elapsed_s=*/3600));
  EXPECT_FALSE(Look(/*elapsed_s=*/3600));
}

TEST_F(LateRanksTest, NamesARankThatStoppedBeforeItsFirstExchange) {
  lines_[1].place = 0;
  EXPECT_EQ(Within(4, {0, 2}), "");
  EXPECT_EQ(Within(1, {0, 2}),
            "waited 5.0 s in all_reduce 'train' (step 12, collective 147); rank 1 is late: at "
            "collective 0, its process 101 does not run (no heartbeat for 5.0 s)");
}

TEST_F(LateRanksTest, KnowsNothingOfRanksThatItDoesNotSee) {
  lines_[1] = {};
  EXPECT_EQ(Within(599, {0, 2}), "");
  EXPECT_EQ(Within(1, {0, 2}),
            "waited 600.0 s in all_reduce 'train' (step 12, collective 147); no rank of this "
            "machine is late: 1 on other machines are, or the transport does not progress");
}

TEST_F(LateRanksTest, NamesTheMachineOfARankThatIsElsewhere) {
  LateRanks late(/*own=*/0, /*ranks=*/3, /*limit_s=*/5, {"", "", "node7"});
  std::optional<WaitingFor> waiting;
  for (int i = 0; i < 7 && !waiting; ++i) {
    Beat({0, 1});
    waiting = late.Look(lines_, 1, kName, bytes_);
  }
  ASSERT_TRUE(waiting);
  EXPECT_EQ(
      waiting->text.substr(waiting->text.find("; ") + 2),
      "rank 2 is late: last seen at collective 147, its process 102 on node7 does not run, or "
      "that machine is cut off (no heartbeat for 5.0 s)");
}

TEST_F(LateRanksTest, SaysNothingWhileItIsNotInAnExchange) {
  lines_[0].place = kInside + 1;
  lines_[1].place = kBehind;
  EXPECT_EQ(Within(3600, {0}), "");
}

}  // namespace
}  // namespace ridge
