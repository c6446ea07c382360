#include "ridge/report/plan_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ridge {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kMiB = 1 << 20;

// A program of one step with `count` nodes of 1, 2, 3, ... ms.  Every other one was timed: it takes
// a third longer than modelled.
Program Training(int count) {
  Program program;
  program.model = "net";
  program.device = "cpu";
  StepPlan step;
  step.name = "train";
  for (int i = 1; i <= count; ++i) {
    PlannedNode node;
    node.name = "node" + std::to_string(i);
    node.op = "relu";
    node.modelled_s = i * 1e-3;
    if (i % 2 == 0) {
      node.measured_s = i * 1e-3;
      node.modelled_s *= 0.75;
    }
    step.nodes.push_back(node);
  }
  program.steps.push_back(step);
  return program;
}

PlanSummary Summary(const Program& program, int64_t limit_bytes) {
  MemoryEstimate memory;
  memory.peak_bytes = 30 * kMiB;
  memory.arena_bytes = 22 * kMiB;
  memory.bound_bytes = 20 * kMiB;
  memory.breakdown = {{"parameters", 2 * kMiB},
                      {"activations", 20 * kMiB},
                      {"communication", 0},
                      {"runtime", 8 * kMiB}};
  memory.peak_step = "train";
  memory.peak_node = "node1";
  memory.largest = {{"x", 12 * kMiB}, {"w", 2 * kMiB}};
  return SummarizePlan(program, memory, /*batch=*/10, /*accumulate=*/1, limit_bytes);
}

TEST(PlanReport, ShowsTheFiveLongestNodesAndTheRestTogether) {
  const Program program = Training(7);
  const std::string text = PlanReport("net", Summary(program, 64 * kMiB), Terminal{});
  EXPECT_THAT(text, HasSubstr("node7     relu      7.00 ms  25.0 %  ###  latency"));
  EXPECT_THAT(text, HasSubstr("node3 "));
  EXPECT_THAT(text, Not(HasSubstr("node2 ")));
  EXPECT_THAT(text, HasSubstr("2 others"));
  EXPECT_THAT(PlanReport("net", Summary(Training(6), 64 * kMiB), Terminal{}),
              HasSubstr("1 other "));
  EXPECT_THAT(text, HasSubstr("measured"));
  EXPECT_THAT(text, HasSubstr("modelled"));
}

TEST(PlanReport, ShowsTheErrorOfTheModelWhereItIsKnown) {
  const std::string text = PlanReport("net", Summary(Training(7), 64 * kMiB), Terminal{});
  EXPECT_THAT(text, HasSubstr("latency  modelled\n"));
  EXPECT_THAT(text, HasSubstr("latency  measured        -25.0 %\n"));
  EXPECT_THAT(text, HasSubstr("\n  modelled 25.0 ms a step (-10.7 %)\n"));
  EXPECT_THAT(PlanReport("net", Summary(Training(1), 64 * kMiB), Terminal{}),
              Not(HasSubstr("modelled 1.00 ms a step")));
}

TEST(PlanReport, SaysPeakBoundAndWhetherItFits) {
  const Program program = Training(1);
  const std::string text = PlanReport("net", Summary(program, 64 * kMiB), Terminal{});
  EXPECT_THAT(text, HasSubstr("Memory  30.0 MiB at the peak\n"));
  EXPECT_THAT(text, HasSubstr("peak at train node 'node1'\n"));
  EXPECT_THAT(text, HasSubstr("arena 22.0 MiB, lower bound 20.0 MiB (+10.0 %)\n"));
  EXPECT_THAT(text, HasSubstr("fits: 30.0 MiB of 64.0 MiB available\n"));
  EXPECT_THAT(text, Not(HasSubstr("communication")));
  EXPECT_THAT(PlanReport("net", Summary(program, kMiB), Terminal{}),
              HasSubstr("does not fit: needs 30.0 MiB, 1.00 MiB available\n"));
}

TEST(PlanReport, AnEmptyProgramHasAReportToo) {
  const Program program;
  EXPECT_THAT(PlanReport("none", Summary(program, kMiB), Terminal{}), HasSubstr("a step"));
}

TEST(PlanReport, ListsThePlansThatWereCompared) {
  const Program program;
  PlanSummary plan = Summary(program, kMiB);
  plan.candidates = {
      {.bytes = 8 * kMiB, .seconds = 0.02, .fits = false},
      {.recompute = "all", .bytes = 6 * kMiB, .seconds = 0.03},
      {.slices = 4, .loss_chunks = 2, .bytes = 4 * kMiB, .seconds = 0.025, .chosen = true}};
  EXPECT_EQ(CandidatesReport(plan, Terminal{}),
            "Compared  by the nominal device, without data\n"
            "  slices  recompute  loss chunks    memory     step\n"
            "       1  off                  1  8.00 MiB  20.0 ms  does not fit\n"
            "       1  all                  1  6.00 MiB  30.0 ms\n"
            "       4  off                  2  4.00 MiB  25.0 ms  chosen\n");
}

TEST(PlanReport, ColourIsOnlyForTerminals) {
  const Program program = Training(2);
  const PlanSummary plan = Summary(program, kMiB);
  EXPECT_THAT(PlanReport("net", plan, Terminal{}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(PlanReport("net", plan, Terminal{.is_terminal = true, .colour = true}),
              HasSubstr("\x1b["));
}

TEST(PlanReport, ComparisonGivesTheErrorOfThePlan) {
  const RunNumbers planned = {110 * kMiB, 50 * kMiB, 0.9e-3, 2.0, 0.8e-3};
  const RunNumbers measured = {100 * kMiB, 50 * kMiB, 1e-3, std::nullopt};
  EXPECT_EQ(ComparisonReport(planned, measured, Terminal{}),
            "  planned against measured   planned  measured    error\n"
            "  peak memory                110 MiB   100 MiB  +10.0 %\n"
            "  arena                     50.0 MiB  50.0 MiB   +0.0 %\n"
            "  step time                   900 us   1.00 ms  -10.0 %\n"
            "    modelled                  800 us   1.00 ms  -20.0 %\n");
}

TEST(PlanReport, ComparisonHasTheEnergyThatWasMeasured) {
  const auto row = [](double joules) {
    RunNumbers measured;
    measured.energy_j = joules;
    const std::string report = ComparisonReport({}, measured, Terminal{});
    return report.substr(report.find("  energy"));
  };
  EXPECT_EQ(row(12.34), "  energy                          -    12.3 J      -\n");
  EXPECT_EQ(row(12340), "  energy                          -   12.3 kJ      -\n");
  EXPECT_EQ(row(1.234e7), "  energy                          -   12.3 MJ      -\n");
}

TEST(PlanReport, RefusalSaysNeedLimitLargestValuesAndTheWayOut) {
  const Program program = Training(1);
  Refusal refusal = {"cpu",
                     Summary(program, 16 * kMiB).memory,
                     16 * kMiB,
                     "--fit allows",
                     {{"--batch 5 --accumulate 2", 15 * kMiB, "step +4.0 %"}}};
  const Status status = DoesNotFit(refusal);
  EXPECT_EQ(status.code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(status.message(),
            "plan: the run needs 30.0 MiB on cpu, --fit allows 16.0 MiB. [R0101]\n"
            "  peak at train node 'node1': parameters 2.00 MiB, activations 20.0 MiB, "
            "runtime 8.00 MiB\n"
            "  largest values there: 'x' 12.0 MiB, 'w' 2.00 MiB\n"
            "  hint: --batch 5 --accumulate 2 needs 15.0 MiB (step +4.0 %)");
  refusal.smaller = {{"--batch 5", 0, "not planned"}, {"--batch 2", 12 * kMiB, ""}};
  EXPECT_THAT(DoesNotFit(refusal).message(),
              HasSubstr("hint: --batch 5 (not planned); --batch 2 needs 12.0 MiB"));
  refusal.smaller.clear();
  EXPECT_THAT(DoesNotFit(refusal).message(), HasSubstr("hint: no batch is small enough"));
  refusal.resumed = true;
  EXPECT_THAT(DoesNotFit(refusal).message(),
              HasSubstr("hint: a resumed run keeps its batch; end other programs, raise --fit, or "
                        "resume it where there is more memory"));
  refusal.used_before = 4 * kMiB;
  EXPECT_THAT(DoesNotFit(refusal).message(),
              HasSubstr("plan: the run needs 30.0 MiB on cpu, --fit allows 16.0 MiB, both with "
                        "4.00 MiB in use before it. [R0101]\n"));
}

}  // namespace
}  // namespace ridge
