#include "ridge/report/profile.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "ridge/core/test_folder.h"
#include "ridge/graph/op_def.h"

namespace ridge {
namespace {

constexpr double kMega = 1e6;

// A step of a convolution, a relu and a reorder of a weight, on a machine of 1 GFLOP/s and 1 GB/s.
class ProfileTest : public ::testing::Test {
 protected:
  ProfileTest() {
    conv_.name = "conv";
    conv_.cost_class = CostClass::kConv;
    relu_.name = "relu";
    weight_ = AddValue("w", {DType::kF32, {16, 16, 1, 1}}, Purpose::kParameters, /*layout=*/0);
    step_.values.back().persistent = true;
    packed_ = AddValue("w@packed", {DType::kF32, {16, 16, 1, 1}}, Purpose::kParameters, 1);
    made_ = AddValue("y", {DType::kF32, {1, 16, 100, 100}}, Purpose::kActivations, 1);
    out_ = AddValue("z", {DType::kF32, {1, 16, 100, 100}}, Purpose::kActivations, 1);
    AddNode("w@packed", "reorder", nullptr, {weight_}, {packed_}, 0, 2 * kMega);
    AddNode("y", "conv", &conv_, {packed_}, {made_}, 10 * kMega, 1 * kMega);
    AddNode("z", "relu", &relu_, {made_}, {out_}, 0, 1.28 * kMega);
    Live(packed_, 0, 1);
    Live(made_, 1, 2);
    Live(out_, 2, 2);
    measured_.step = &step_;
    measured_.step_s = 0.060;
    measured_.plain_step_s = 0.058;
    measured_.input_wait_s = 0.004;
    measured_.steps = 3;
    measured_.batch = 1;
    measured_.model = "net";
    measured_.persistent_bytes = 1000;
    measured_.node_s = {0.020, 0.025, 0.010};
    measured_.limits.name = "machine";
    measured_.limits.peak_flops_per_s = {{"f32", 1e9}};
    measured_.limits.memory = {{"L2", 1, 1e12}, {"DRAM", int64_t{1} << 40, 1e9}};
  }

  int AddValue(const std::string& name, TensorType type, Purpose purpose, LayoutId layout) {
    PlannedValue value;
    value.name = name;
    value.size_bytes = type.bytes();
    value.type = std::move(type);
    value.purpose = purpose;
    value.layout = layout;
    value.live = {-1, -1};
    step_.values.push_back(value);
    return static_cast<int>(step_.values.size()) - 1;
  }

  void AddNode(const std::string& name, const std::string& op, const OpDef* def,
               std::vector<int> inputs, std::vector<int> outputs, double flops, double bytes) {
    PlannedNode node;
    node.name = name;
    node.op = op;
    node.def = def;
    for (const int v : inputs)
      node.call.inputs.push_back(step_.values[static_cast<size_t>(v)].type);
    for (const int v : outputs)
      node.call.outputs.push_back(step_.values[static_cast<size_t>(v)].type);
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    node.cost = {.flops = static_cast<int64_t>(flops),
                 .bytes_read = static_cast<int64_t>(bytes / 2),
                 .bytes_written = static_cast<int64_t>(bytes / 2)};
    node.choice.kernel = "kernel";
    node.choice.key = op + " key";
    step_.nodes.push_back(std::move(node));
  }

  void Live(int value, int first, int last) {
    step_.values[static_cast<size_t>(value)].live = {first, last};
  }

  const ProfileGroup& Group(const StepProfile& profile, const std::string& op) {
    for (const ProfileGroup& group : profile.groups) {
      if (group.op == op) return group;
    }
    throw Bug("no such group");
  }

  OpDef conv_, relu_;
  StepPlan step_;
  StepMeasurement measured_;
  int weight_ = 0, packed_ = 0, made_ = 0, out_ = 0;
};

TEST_F(ProfileTest, RowsAddUpToTheStep) {
  const StepProfile profile = AnalyzeStep(measured_);
  double sum = 0;
  for (const ProfileRow& row : profile.rows) sum += row.seconds;
  EXPECT_NEAR(sum, measured_.step_s, 1e-12);
  EXPECT_EQ(profile.rows.back().part, ProfilePart::kRuntime);
  EXPECT_NEAR(profile.rows.back().seconds, 0.001, 1e-12);
}

TEST_F(ProfileTest, LimitsFollowTheRoofline) {
  const StepProfile profile = AnalyzeStep(measured_);
  EXPECT_EQ(Group(profile, "conv").part, ProfilePart::kCompute);
  EXPECT_NEAR(Group(profile, "conv").limit_s, 0.010, 1e-12);
  EXPECT_EQ(Group(profile, "relu").part, ProfilePart::kMemory);
  EXPECT_NEAR(Group(profile, "relu").limit_s, 0.00128, 1e-12);
  EXPECT_EQ(Group(profile, "relu").level, "DRAM");
  EXPECT_EQ(Group(profile, "reorder").limit_s, 0);
  EXPECT_EQ(Group(profile, "reorder").row, "of weights");
}

TEST_F(ProfileTest, WhatTheHostRunsIsNotJudgedByTheDevice) {
  step_.nodes[2].on_host = true;
  const StepProfile profile = AnalyzeStep(measured_);
  const ProfileGroup& group = Group(profile, "relu");
  EXPECT_TRUE(group.on_host);
  EXPECT_EQ(group.limit_s, 0);
  EXPECT_EQ(group.level, "host");
  EXPECT_EQ(group.row, "relu by the host");
  EXPECT_EQ(group.cause, "");
  EXPECT_FALSE(Group(profile, "conv").on_host);
  EXPECT_NEAR(profile.limit_s, 0.010, 1e-12);
  EXPECT_NE(ProfileReport(profile, Terminal{}).find("relu by the host"), std::string::npos);
  const nlohmann::json json = nlohmann::json::parse(ProfileToJson(profile));
  EXPECT_EQ(json.at("nodes")[1].at("on_host"), false);
  EXPECT_EQ(json.at("nodes")[2].at("on_host"), true);
}

TEST_F(ProfileTest, EqualKeysMakeOneGroup) {
  AddNode("z2", "relu", &relu_, {made_}, {out_}, 0, 1.28 * kMega);
  measured_.node_s.push_back(0.001);
  const StepProfile profile = AnalyzeStep(measured_);
  EXPECT_EQ(Group(profile, "relu").nodes, (std::vector<int>{2, 3}));
  EXPECT_NEAR(Group(profile, "relu").seconds, 0.011, 1e-12);
}

TEST_F(ProfileTest, TheCauseIsNamed) {
  step_.nodes[1].choice.kernel = "reference";
  step_.nodes[1].refusals = {{"onednn.conv", "no such stride"}};
  const StepProfile profile = AnalyzeStep(measured_);
  EXPECT_EQ(Group(profile, "conv").cause, "reference kernel");
  EXPECT_NE(Group(profile, "conv").why.find("onednn.conv declined: no such stride"),
            std::string::npos);
  EXPECT_EQ(Group(profile, "relu").cause, "slow kernel");
  measured_.node_s[2] = 0.0025;
  EXPECT_EQ(Group(AnalyzeStep(measured_), "relu").cause, "memory traffic");
  measured_.node_s = {1e-6, 0.0101, 0.0013};  // at their limits
  EXPECT_EQ(Group(AnalyzeStep(measured_), "conv").cause, "");
}

TEST_F(ProfileTest, AdviceIsOrderedAndDoesNotCountANodeTwice) {
  const StepProfile profile = AnalyzeStep(measured_);
  ASSERT_EQ(profile.advice.size(), 3U);
  EXPECT_EQ(profile.advice[0].what, "reorders of weights");
  EXPECT_NEAR(profile.advice[0].gain_s, 0.020, 1e-12);
  EXPECT_NEAR(profile.advice[1].gain_s, 0.025 - 0.010 / 0.9, 1e-12);
  // The relu is worth its whole time inside the convolution, so slowness is not counted again.
  EXPECT_EQ(profile.advice[2].what, "relu as a node of its own");
  EXPECT_NEAR(profile.advice[2].gain_s, 0.010, 1e-12);
}

TEST_F(ProfileTest, LiveBytesFollowTheRanges) {
  step_.nodes[1].workspace_offset = 0;
  step_.nodes[1].choice.workspace_bytes = 64;
  const std::vector<LiveBytes> live = LiveBytesByNode(step_, 1000);
  ASSERT_EQ(live.size(), 3U);
  EXPECT_EQ(live[0].total(), 1000 + 1024);
  EXPECT_EQ(live[1].total(), 1000 + 1024 + 640000 + 64);
  EXPECT_EQ(live[2].total(), 1000 + 2 * 640000);
}

TEST_F(ProfileTest, TheReportHasATotalAndWhatWouldHelp) {
  const std::string text = ProfileReport(AnalyzeStep(measured_), Terminal{});
  for (const char* part : {"Profile  net, batch 1", "where the time goes", "of weights", "runtime",
                           "What would help most", "-33.3 % of the step (-20.0 ms)"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST_F(ProfileTest, OperatorsBeyondTheSixthAreOthers) {
  const auto add = [&](const std::string& op) {
    AddNode(op, op, &relu_, {made_}, {out_}, 0, kMega);
    measured_.node_s.push_back(0.0001);
  };
  for (const char* op : {"a", "b", "c", "d", "e", "f"}) add(op);
  EXPECT_NE(ProfileReport(AnalyzeStep(measured_), Terminal{}).find("  1 other "),
            std::string::npos);
  add("g");
  EXPECT_NE(ProfileReport(AnalyzeStep(measured_), Terminal{}).find("  2 others "),
            std::string::npos);
}

TEST_F(ProfileTest, JsonHoldsEveryNode) {
  const nlohmann::json json = nlohmann::json::parse(ProfileToJson(AnalyzeStep(measured_)));
  EXPECT_EQ(json.at("nodes").size(), 3U);
  EXPECT_EQ(json.at("nodes")[1].at("live_bytes"), 1000 + 1024 + 640000);
  EXPECT_EQ(json.at("step_s"), 0.060);
  EXPECT_EQ(json.at("limits").at("memory").size(), 2U);
}

TEST_F(ProfileTest, TheTraceIsJsonWithACounter) {
  const std::string path = TestFolder() + "/profile.json";
  ASSERT_TRUE(WriteProfileTrace(AnalyzeStep(measured_), path).ok());
  std::ifstream file(path);
  const nlohmann::json trace = nlohmann::json::parse(file);
  int spans = 0, counters = 0;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") ++spans;
    if (event.at("ph") == "C") ++counters;
  }
  EXPECT_EQ(spans, 5);     // the step, the wait, three nodes
  EXPECT_EQ(counters, 7);  // memory and rate of each node, memory at the end
}

TEST_F(ProfileTest, ThePageEscapesNames) {
  step_.nodes[1].name = "<script>";
  const std::string page = ProfileToHtml(AnalyzeStep(measured_));
  EXPECT_EQ(page.find("<script> "), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
}

}  // namespace
}  // namespace ridge
