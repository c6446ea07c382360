#include "ridge/lower/roofline.h"

#include <gtest/gtest.h>

#include "ridge/graph/builder.h"
#include "ridge/lower/kernel_query.h"
#include "ridge/lower/test_costs.h"

namespace ridge {
namespace {

// Products take the time of their operands' arithmetic, whatever they are stored in.
TEST(Roofline, ProductsOfBf16ThatGiveF32ArePricedAsBf16) {
  const auto seconds = [](DType operands, DType bias, DType result) {
    GraphBuilder b("g");
    const Value x = b.Input("x", {operands, {512, 512}}), w = b.Input("w", {operands, {512, 512}});
    const Value c = b.Input("c", {bias, {512}});
    b.Output("y", Op("matmul", {x, w, c}, {{"out_dtype", result}}, "y"));
    const auto graph = b.Build();
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    const Cost cost = {.flops = 2 * 512 * 512 * 512};
    const Node& node = graph->node(0);
    return TestCosts().Seconds(WorkOf(node.op, graph->Call(node), cost), KernelChoice());
  };
  const double bf16 = seconds(DType::kBF16, DType::kF32, DType::kF32);
  EXPECT_DOUBLE_EQ(bf16, seconds(DType::kBF16, DType::kF32, DType::kBF16));
  EXPECT_LT(bf16, 0.6 * seconds(DType::kF32, DType::kF32, DType::kF32));
}

// A choice for one thread has the same seconds whichever number of threads the device has: a
// thread's share of the arithmetic and of the caches, and all of the memory.
TEST(Roofline, OneThreadTakesAsLongOnAnyDevice) {
  const Roofline one(TestDevice(1)), three(TestDevice(3));
  KernelChoice alone;
  alone.one_thread = true;
  const Work arithmetic = {CostClass::kMatmul, DType::kF32, {.flops = 1'000'000'000}};
  const Work in_cache = {CostClass::kMove, DType::kF32, {.bytes_read = 1 << 20}};
  const Work in_memory = {CostClass::kMove, DType::kF32, {.bytes_read = 1 << 30}};
  for (const Work& work : {arithmetic, in_cache, in_memory})
    EXPECT_EQ(one.Seconds(work, alone), three.Seconds(work, alone));
  EXPECT_LT(three.Seconds(arithmetic, KernelChoice()), one.Seconds(arithmetic, alone));
}

TEST(Roofline, BytesInTheFastestMemoryAreNeverSlower) {
  for (const int64_t bytes : {1 << 10, 1 << 22, 1 << 30}) {
    const Work work = {CostClass::kMove, DType::kF32, {.bytes_read = bytes}};
    const double cached = TestCosts().CachedSeconds(work, KernelChoice());
    EXPECT_DOUBLE_EQ(cached, 1e-6 + static_cast<double>(bytes) / 100e9);
    EXPECT_LE(cached, TestCosts().Seconds(work, KernelChoice()));
  }
}

TEST(Roofline, KernelsThatWereTimedKeepBothTimes) {
  DeviceProfile device = TestDevice(1);
  device.kernel_s = {{"known", 0.25}};
  const Roofline costs(device);
  const Work work = {CostClass::kMove, DType::kF32, {.bytes_read = 1 << 20}};
  KernelChoice choice;
  const TimeEstimate modelled = costs.Estimate(work, choice);
  EXPECT_FALSE(modelled.measured_s);
  choice.key = "known";
  const TimeEstimate measured = costs.Estimate(work, choice);
  EXPECT_EQ(measured.seconds(), 0.25);
  EXPECT_EQ(measured.modelled_s, modelled.modelled_s);
}

// The level before the memory is shared; the one before that is the threads' own.
TEST(Roofline, KnowsTheCachesByTheLevels) {
  DeviceProfile device = TestDevice(4);
  EXPECT_EQ(Roofline(device).facts().core_cache_bytes, 1 << 20);
  EXPECT_EQ(Roofline(device).facts().last_cache_bytes, 16 << 20);
  device.memory = {{"DRAM", 1 << 30, 1e9}};
  EXPECT_EQ(Roofline(device).facts().core_cache_bytes, 0);
  EXPECT_EQ(Roofline(device).facts().last_cache_bytes, 0);
}

// Packed attention has one tensor for q, k and v: what is absent has no type.
TEST(CostModelTest, AnAbsentOperandDoesNotPriceAProduct) {
  const TensorType packed{DType::kBF16, {1, 64, 3, 2, 64}}, rows{DType::kBF16, {1, 64, 2, 64}};
  OpCall call;
  call.inputs = {packed, OpCall::Absent(), OpCall::Absent(), rows, {DType::kF32, {1, 2, 64}}, rows};
  call.outputs = {packed};
  EXPECT_EQ(WorkOf(FindOp("attention_grad"), call, {}).dtype, DType::kBF16);
}

}  // namespace
}  // namespace ridge
