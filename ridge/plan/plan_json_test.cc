#include "ridge/plan/plan_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ridge {
namespace {

PlannedNode Node(const std::string& name, double seconds) {
  PlannedNode node;
  node.name = name;
  node.op = "matmul";
  node.cost = {.flops = 20, .bytes_read = 8, .bytes_written = 4};
  node.modelled_s = seconds;
  node.bound = Bound::kCompute;
  node.choice.kernel = "reference";
  return node;
}

StepPlan Step(const std::string& name, std::vector<PlannedNode> nodes) {
  StepPlan step;
  step.name = name;
  step.nodes = std::move(nodes);
  return step;
}

Program Accumulating() {
  Program program;
  program.model = "mlp";
  program.device = "cpu";
  program.steps.push_back(Step("micro", {Node("a", 0.25), Node("b", 0.5)}));
  program.steps.push_back(Step("update", {Node("c", 1)}));
  program.steps.push_back(Step("eval", {Node("d", 8)}));
  return program;
}

MemoryEstimate Memory() {
  MemoryEstimate memory;
  memory.peak_bytes = 100;
  memory.breakdown = {{"parameters", 60}, {"runtime", 40}};
  memory.largest = {{"w", 60}};
  return memory;
}

TEST(PlanJson, AnUpdateRunsItsMicroBatchesAndNoEvaluation) {
  const Program program = Accumulating();
  const PlanSummary plan = SummarizePlan(program, Memory(), 32, /*accumulate=*/4, 1000);
  EXPECT_DOUBLE_EQ(plan.step_s, 4 * 0.75 + 1);
  const auto json = nlohmann::json::parse(PlanToJson(plan));
  ASSERT_EQ(json["nodes"].size(), 3);
  EXPECT_EQ(json["nodes"][1]["name"], "b");
  EXPECT_EQ(json["nodes"][1]["runs"], 4);
  EXPECT_EQ(json["nodes"][2]["step"], "update");
}

TEST(PlanJson, HoldsWhatScriptsRelyOn) {
  const Program program = Accumulating();
  const auto json = nlohmann::json::parse(PlanToJson(SummarizePlan(program, Memory(), 32, 1, 99)));
  EXPECT_EQ(json["device"], "cpu");
  EXPECT_EQ(json["breakdown"]["runtime"], 40);
  EXPECT_EQ(json["fits"], false);
  EXPECT_EQ(json["limit_bytes"], 99);
  EXPECT_TRUE(json["epoch_s"].is_null());
  EXPECT_EQ(json["nodes"][0]["bound"], "compute");
  EXPECT_EQ(json["nodes"][0]["bytes_read"], 8);
}

TEST(PlanJson, KeepsWhatWasMeasuredApartFromWhatIsModelled) {
  Program program = Accumulating();
  program.steps[0].nodes[0].measured_s = 2;
  program.steps[0].calibration = 1.5;
  const PlanSummary plan = SummarizePlan(program, Memory(), 32, /*accumulate=*/1, 99);
  const auto json = nlohmann::json::parse(PlanToJson(plan));
  const auto timed = json["nodes"][0], other = json["nodes"][1];
  EXPECT_EQ(timed["s"], 3);
  EXPECT_EQ(timed["modelled_s"], 0.25);
  EXPECT_EQ(timed["measured_s"], 2);
  EXPECT_EQ(timed["measured"], true);
  EXPECT_EQ(other["s"], 0.75);
  EXPECT_TRUE(other["measured_s"].is_null());
  EXPECT_EQ(other["measured"], false);
  EXPECT_EQ(json["steps"][0]["s"], 3.75);
  EXPECT_EQ(json["steps"][0]["modelled_s"], 0.75);
  EXPECT_EQ(json["step_s"], 4.75);
  EXPECT_EQ(json["modelled_step_s"], 1.75);
}

TEST(PlanJson, APlanThatNeedsExactlyTheLimitFits) {
  const Program program = Accumulating();
  EXPECT_TRUE(SummarizePlan(program, Memory(), 1, 1, 100).fits);
}

TEST(PlanJson, NamesThatAreNotUtf8DoNotBreakTheJson) {
  Program program = Accumulating();
  program.steps[0].nodes[0].name = "\xff\"\n";
  const auto json = nlohmann::json::parse(PlanToJson(SummarizePlan(program, Memory(), 1, 1, 1)));
  EXPECT_EQ(json["nodes"][0]["name"], "\xEF\xBF\xBD\"\n");
}

TEST(PlanJson, ListsThePlansThatWereCompared) {
  const Program program = Accumulating();
  PlanSummary plan = SummarizePlan(program, Memory(), 32, 1, 99);
  EXPECT_EQ(nlohmann::json::parse(PlanToJson(plan))["candidates"].size(), 0);
  plan.candidates = {{.bytes = 120, .seconds = 2, .fits = false},
                     {.slices = 4, .recompute = "3", .bytes = 90, .seconds = 3, .chosen = true}};
  const auto json = nlohmann::json::parse(PlanToJson(plan))["candidates"];
  ASSERT_EQ(json.size(), 2);
  EXPECT_EQ(json[0]["fits"], false);
  EXPECT_EQ(json[1]["slices"], 4);
  EXPECT_EQ(json[1]["recompute"], "3");
  EXPECT_EQ(json[1]["bytes"], 90);
  EXPECT_EQ(json[1]["s"], 3);
  EXPECT_EQ(json[1]["chosen"], true);
}

TEST(PlanJson, SeveralPlansAreAnArray) {
  const Program program = Accumulating();
  const PlanSummary plan = SummarizePlan(program, Memory(), 1, 1, 1);
  EXPECT_EQ(nlohmann::json::parse(PlansToJson({plan, plan})).size(), 2);
  EXPECT_EQ(PlansToJson({}), "[]");
}

TEST(PlanJson, AProgramThatOnlyInfersIsItsFirstStep) {
  Program program;
  program.steps.push_back(Step("infer", {Node("a", 2)}));
  EXPECT_DOUBLE_EQ(SummarizePlan(program, Memory(), 1, 1, 1).step_s, 2);
  EXPECT_TRUE(UpdateParts(Program(), 1).empty());
}

// The micro-batch runs four times, the update once, evaluation is none of it.
TEST(UpdateCost, IsThatOfAllNodesAsOftenAsTheyRun) {
  const Cost cost = UpdateCost(Accumulating(), /*accumulate=*/4);
  EXPECT_EQ(cost.flops, (4 * 2 + 1) * 20);
  EXPECT_EQ(cost.bytes_read, (4 * 2 + 1) * 8);
  EXPECT_EQ(cost.bytes_written, (4 * 2 + 1) * 4);
}

}  // namespace
}  // namespace ridge
