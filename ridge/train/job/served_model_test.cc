#include "ridge/train/job/served_model.h"

#include <gtest/gtest.h>

#include "ridge/plan/hardware/planned_device.h"

namespace ridge {
namespace {

constexpr const char* kLlama = "llama:vocab=64,context=32,hidden=64,layers=2,heads=4,kv_heads=2";

// An L4 that multiplies bf16.
struct L4 {
  L4() : device(*FindHardware("l4"), Use()) {
    const Result<PlannedHardware> facts = PlanHardware(*FindHardware("l4"), Use());
    EXPECT_TRUE(facts.ok());
    machine.planned = &device;
    machine.profile = facts->profile;
    machine.memory_bytes = facts->memory_bytes;
    machine.software = Use().software;
  }
  static DeviceUse Use() {
    return {.operands = DType::kBF16, .software = *FindSoftware(kOwnSoftware, "bf16")};
  }
  PlannedDevice device;
  Machine machine;
};

ModelCost CostOf(const ServedModel& model) {
  const Result<ServedGraphs> graphs = LoadServedGraphs(model, DType::kBF16, {});
  EXPECT_TRUE(graphs.ok()) << graphs.status().message();
  L4 l4;
  const Result<ModelCost> cost = PlanServed(*graphs, "bf16", l4.machine);
  EXPECT_TRUE(cost.ok()) << cost.status().message();
  return *cost;
}

ServedModel Llama(int64_t prompt, int64_t output, int64_t sequences) {
  return {.model = kLlama, .batch = sequences, .tokens = TokenCounts{prompt, output}};
}

std::string Error(const ServedModel& model) {
  return LoadServedGraphs(model, DType::kBF16, {}).status().message();
}

TEST(ServedModelTest, WeightsTakeTwoBytes) {
  const ModelCost cost = CostOf({.model = "mlp"});
  EXPECT_NEAR(static_cast<double>(cost.weight_bytes), 2 * 669706, 2 * 2 * 1034)
      << "biases have four";
  EXPECT_GT(cost.run_s, 0);
  EXPECT_LT(cost.low, 1);
  EXPECT_GT(cost.high, 1);
  EXPECT_EQ(cost.cache_bytes, 0);
}

TEST(ServedModelTest, LargerBatchesTakeLongerAndLessASample) {
  const ModelCost one = CostOf({.model = "resnet18"}),
                  eight = CostOf({.model = "resnet18", .batch = 8});
  EXPECT_GT(eight.run_s, one.run_s);
  EXPECT_LT(eight.run_s, 8 * one.run_s);
  EXPECT_EQ(eight.weight_bytes, one.weight_bytes);
  EXPECT_GT(eight.scratch_bytes, one.scratch_bytes);
}

// 2 layers kv_heads head_dim tokens sequences numbers of 2 bytes.
TEST(ServedModelTest, CachesGrowWithTokensAndSequences) {
  for (const int64_t sequences : {1, 8, 32}) {
    for (const int64_t prompt : {4, 16}) {
      const ModelCost cost = CostOf(Llama(prompt, 8, sequences));
      EXPECT_EQ(cost.cache_bytes, 2 * 2 * 2 * 16 * (prompt + 8) * sequences * 2);
    }
  }
}

TEST(ServedModelTest, TokensTakeLongerWithMoreSequencesAndLongerOnes) {
  const ModelCost base = CostOf(Llama(4, 8, 1));
  EXPECT_LE(base.token_s, CostOf(Llama(16, 8, 1)).token_s);
  EXPECT_LE(base.token_s, CostOf(Llama(4, 8, 64)).token_s);
  EXPECT_EQ(base.weight_bytes, CostOf(Llama(16, 8, 64)).weight_bytes);
  EXPECT_EQ(base.prefill_s, CostOf(Llama(4, 16, 8)).prefill_s) << "a prompt is read alone";
}

TEST(ServedModelTest, TheUsualTokensFitTheContext) {
  EXPECT_EQ(UsualTokens("llama2_7b")->prompt, 512);
  EXPECT_EQ(UsualTokens("llama2_7b")->output, 128);
  EXPECT_EQ(UsualTokens(kLlama)->prompt, 16);
  EXPECT_EQ(UsualTokens(kLlama)->output, 16);
  EXPECT_FALSE(UsualTokens("resnet50"));
  EXPECT_FALSE(UsualTokens("net.onnx"));
}

TEST(ServedModelTest, RefusesTokensThatTheModelCannotHave) {
  EXPECT_EQ(
      Error({.model = "resnet50", .tokens = TokenCounts{4, 8}}),
      "resnet50 writes no tokens. hint: prompt, output and sequences are of built-in language "
      "models, such as llama, gpt2 and whisper_tiny");
  EXPECT_EQ(Error(Llama(30, 8, 1)), std::string(kLlama) +
                                        " has a context of 32 tokens; a prompt of 30 and an output "
                                        "of 8 need 38");
}

}  // namespace
}  // namespace ridge
