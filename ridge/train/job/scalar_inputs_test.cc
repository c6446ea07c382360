#include "ridge/train/job/scalar_inputs.h"

#include <gtest/gtest.h>

#include "ridge/graph/text.h"
#include "ridge/train/job/job.h"
#include "ridge/train/options/test_machine.h"

namespace ridge {
namespace {

constexpr int64_t kBatch = 64, kWidth = 256;
constexpr char kNet[] = R"(graph net
  x = input f32[batch=64,256]
  target = input f32[batch=64,256]
  w = parameter f32[256,256] init=normal(0.1)
  h = matmul(x, w)
  v = parameter f32[256,256] init=normal(0.1)
  y = matmul(h, v)
  d = sub(y, target)
  e = mul(d, d)
  loss = reduce_mean(e)
  output loss
)";

class InputSlotsTest : public ::testing::Test {
 protected:
  InputSlotsTest() {
    Result<Graph> graph = ParseGraph(kNet, "net.ridge");
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    forward_ = std::move(*graph);
    options_.model = "net";
    options_.batch = kBatch;
    options_.data = "synthetic";
    options_.slices = "1";
  }

  PlannedJob Plan(const std::string& precision, const JobData* data) {
    options_.precision = precision;
    Result<PlannedJob> job = PlanJob(options_, forward_, data, machine_.get());
    EXPECT_TRUE(job.ok()) << job.status().message();
    return std::move(*job);
  }

  JobData Open() {
    Result<JobData> data = OpenJobData(options_, forward_, *InspectForward(forward_));
    EXPECT_TRUE(data.ok()) << data.status().message();
    return std::move(*data);
  }

  // The first batch in the order of the samples.
  static void Load(const JobData& data, const BatchSpec& spec, std::vector<BatchSlot> slots) {
    LoaderOptions loading;
    loading.batch = kBatch;
    loading.shuffle = false;
    const auto loader = BatchLoader::Create(data.train, spec, loading, std::move(slots));
    ASSERT_TRUE(loader.ok()) << loader.status().message();
    ASSERT_TRUE((*loader)->Next().ok());
  }

  const TestMachine machine_;
  Graph forward_;
  TrainOptions options_;
};

std::string TypesOf(const BatchSpec& spec) {
  std::string types;
  for (const InputSpec& input : spec.inputs)
    types += input.name + " " + TypeToString(input.type) + ", ";
  return types;
}

TEST_F(InputSlotsTest, OnlyWhatEveryStepRoundsComesInSixteenBits) {
  const JobData data = Open();
  EXPECT_EQ(TypesOf(AsPlanned(Plan("f16", &data).program, data.train_spec)),
            "x f16[256], target f32[256], ");
  EXPECT_EQ(TypesOf(AsPlanned(Plan("f32", &data).program, data.train_spec)),
            "x f32[256], target f32[256], ");
}

TEST_F(InputSlotsTest, ABatchIsRoundedAsACastWouldRoundIt) {
  const JobData data = Open();
  PlannedJob job = Plan("f16", &data);
  auto executor = Executor::Create(std::move(job.program), *machine_.get().backend);
  ASSERT_TRUE(executor.ok()) << executor.status().message();
  const BatchSpec spec = AsPlanned((*executor)->program(), data.train_spec);
  Load(data, spec, InputSlots(**executor, spec));
  std::vector<float> x(kBatch * kWidth), target(kBatch * kWidth);
  BatchSlot slot;
  slot.inputs = {x.data(), target.data()};
  Load(data, data.train_spec, {slot});
  const auto* rounded = static_cast<const uint16_t*>((*executor)->transfers().Input("x"));
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(rounded[i], FloatToF16(x[i])) << i;
}

// One that nothing reads, and one that only another output reads.
TEST_F(InputSlotsTest, WhatNoStepReadsIsNotFilled) {
  std::string text = kNet;
  text.replace(text.find("  w ="), 0, "  unread = input f32[64]\n  other = input f32[64]\n");
  text += "  twice = add(other, other)\n  output twice\n";
  Result<Graph> graph = ParseGraph(text, "net.ridge");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  forward_ = std::move(*graph);
  const JobData data = Open();
  for (const char* precision : {"f32", "bf16"}) {
    PlannedJob job = Plan(precision, &data);
    const BatchSpec spec = AsPlanned(job.program, data.train_spec);
    EXPECT_EQ(spec.inputs.size(), 2u) << TypesOf(spec);
    auto executor = Executor::Create(std::move(job.program), *machine_.get().backend);
    ASSERT_TRUE(executor.ok()) << executor.status().message();
    Load(data, spec, InputSlots(**executor, spec));
  }
}

// A sample that was copied into its slot needs room of its own when it is rounded.
TEST_F(InputSlotsTest, ThePlanHasTheRoomOfSamplesThatAreRounded) {
  const JobData data = Open();
  const PlannedJob wide = Plan("f32", &data), rounded = Plan("f16", &data);
  EXPECT_EQ(wide.data_bytes, PlannedDataBytes(data, kBatch));
  EXPECT_EQ(rounded.data_bytes, PlannedDataBytes(data, kBatch, &rounded.program));
  EXPECT_GT(rounded.data_bytes, wide.data_bytes);
}

}  // namespace
}  // namespace ridge
