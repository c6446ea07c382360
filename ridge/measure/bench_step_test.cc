#include "ridge/measure/bench_step.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ridge/train/loop/test_support.h"

namespace ridge {
namespace {

TEST(BenchStepTest, HasTheKeysOfTheContract) {
  const TestMachine machine;
  BenchRequest request;
  request.options = TinyRequest("").options;
  request.steps = 4;
  request.rehearse_s = 0;
  request.measure_peaks = [](DType) { return Result<MachinePeaks>({1e9, 1e10}); };
  const Result<BenchResult> result = BenchStep(request, machine.get());
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_LT(result->loss, result->loss0);  // the same batch again and again is learnt
  // Forward, backward the weights again and the hidden layer's gradient; and adding the biases.
  EXPECT_EQ(result->model_flops, 2 * 8 * (12 * 8 * 2 + 8 * 3 * 3) + 8 * (8 + 3));
  const auto json = nlohmann::json::parse(BenchToJson(*result));
  for (const char* key : {"fw",
                          "ver",
                          "model",
                          "batch",
                          "opt",
                          "prec",
                          "threads",
                          "params",
                          "ms_min",
                          "ms_med",
                          "ms_mean",
                          "samples_s",
                          "first_step_s",
                          "peak_mb",
                          "loss0",
                          "loss",
                          "planned",
                          "measured",
                          "peak_flops_per_s",
                          "bytes_per_s",
                          "model_flops",
                          "flops_floor_s",
                          "roofline_step_s"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_EQ(json["fw"], "ridge");
  EXPECT_EQ(json["params"], 12 * 8 + 8 + 8 * 3 + 3);
}

}  // namespace
}  // namespace ridge
