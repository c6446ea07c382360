#include "ridge/learn/optimizers/moments.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ridge/graph/interpret.h"
#include "ridge/graph/text.h"
#include "ridge/learn/training_graph.h"

namespace ridge {
namespace {

// A table of embeddings, a large weight, a small bias.
constexpr char kNet[] =
    "graph net\n"
    "  tokens = input i64[2]\n"
    "  table = parameter f32[600,16]\n"
    "  w = parameter f32[300,16]\n"
    "  bias = parameter f32[300]\n"
    "  h = gather(table, tokens)\n"
    "  y = matmul(h, w, transpose_b=1)\n"
    "  z = add(y, bias)\n"
    "  loss = reduce_mean(z)\n"
    "  output loss\n";

Graph Parsed(const std::string& text) {
  const Result<Graph> graph = ParseGraph(text, "net.ridge");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *graph;
}

Graph TrainGraph(const Graph& forward, const OptimizerOptions& optimizer, int64_t accumulate = 1) {
  const auto graphs =
      BuildTrainingGraphs(forward, {.optimizer = optimizer, .accumulate = accumulate});
  EXPECT_TRUE(graphs.ok()) << graphs.status().message();
  return graphs->back().graph;
}

OptimizerOptions Keeping(const std::string& state) {
  OptimizerOptions options;
  options.state = state;
  return options;
}

std::string TypeOf(const Graph& graph, const std::string& name) {
  const ValueId id = graph.FindValue(name);
  return id == kNoValue ? "none" : TypeToString(graph.type(id));
}

TEST(FormOfMoments, EightBitsAreForLargeWeightsThatAreNoTables) {
  const Graph train = TrainGraph(Parsed(kNet), Keeping("8bit"));
  EXPECT_EQ(TypeOf(train, "table.m"), "f32[600,16]");
  EXPECT_EQ(TypeOf(train, "table.m_absmax"), "none");
  EXPECT_EQ(TypeOf(train, "w.m"), "u8[300,16]");
  EXPECT_EQ(TypeOf(train, "w.v"), "u8[300,16]");
  EXPECT_EQ(TypeOf(train, "w.v_absmax"), "f32[19]");
  EXPECT_EQ(TypeOf(train, "bias.v"), "f32[300]");
  EXPECT_EQ(TypeOf(train, kRoundingInput), "none");
}

TEST(FormOfMoments, Bf16IsForAll) {
  const Graph train = TrainGraph(Parsed(kNet), Keeping("bf16"));
  EXPECT_EQ(TypeOf(train, "table.m"), "bf16[600,16]");
  EXPECT_EQ(TypeOf(train, "bias.v"), "bf16[300]");
  EXPECT_EQ(TypeOf(train, kRoundingInput), "i64[2]");
}

TEST(FormOfMoments, IsTheSameInTheUpdateAfterMicroBatches) {
  OptimizerOptions sgd = Keeping("8bit");
  sgd.name = "sgd";
  sgd.momentum = 0.9;
  const Graph update = TrainGraph(Parsed(kNet), sgd, /*accumulate=*/2);
  EXPECT_EQ(TypeOf(update, "table.momentum"), "f32[600,16]");
  EXPECT_EQ(TypeOf(update, "w.momentum"), "u8[300,16]");
  EXPECT_EQ(TypeOf(update, "w.momentum_absmax"), "f32[19]");
}

TEST(FormOfMoments, IsF32WhenNothingIsSaidAndWholeForF64) {
  EXPECT_EQ(TypeOf(TrainGraph(Parsed(kNet), {}), "w.m"), "f32[300,16]");
  std::string wide = kNet;
  for (size_t at = 0; (at = wide.find("f32", at)) != std::string::npos;) wide.replace(at, 3, "f64");
  for (const char* state : {"bf16", "8bit"})
    EXPECT_EQ(TypeOf(TrainGraph(Parsed(wide), Keeping(state)), "w.m"), "f64[300,16]");
}

TEST(IsTable, SeesAGatherBehindACast) {
  const Graph graph = Parsed(
      "graph net\n"
      "  tokens = input i64[2]\n"
      "  table = parameter f32[600,16]\n"
      "  index = parameter i64[2]\n"
      "  narrow = cast(table, to=\"bf16\")\n"
      "  h = gather(narrow, tokens)\n"
      "  output h\n");
  EXPECT_TRUE(IsTable(graph, graph.FindValue("table")));
  EXPECT_FALSE(IsTable(graph, graph.FindValue("index")));
}

// Adam's v after `steps` updates by the gradients `grad`, as the reference computes them.
std::vector<double> SecondMoments(DType state, const std::vector<double>& grad, int64_t steps) {
  const auto count = static_cast<int64_t>(grad.size());
  const OpDef& op = *FindOp("adam_update");
  const TensorType f32 = {DType::kF32, {count}}, kept = {state, {count}};
  const TensorType absmax = {DType::kF32, {CodeBlocks(count)}};
  std::vector<Tensor> inputs = {Tensor(f32),
                                Tensor(f32),
                                Tensor(kept),
                                Tensor(kept),
                                Tensor::Scalar(DType::kF32, 1e-3),
                                Tensor::Scalar(DType::kI64, 1),
                                Tensor::FromInts({2}, std::vector<int64_t>{3, 0}),
                                Tensor(absmax),
                                Tensor(absmax)};
  OpCall call{.where = "adam_update 'y'", .inputs = {}, .outputs = {}, .attrs = {}};
  for (const Tensor& input : inputs) call.inputs.push_back(input.type());
  const auto types = InferCall(op, call);
  EXPECT_TRUE(types.ok()) << types.status().message();
  call.outputs = *types;
  for (int64_t i = 0; i < count; ++i)
    StoreFromDouble(DType::kF32, inputs[1].mutable_data(), i, grad[static_cast<size_t>(i)]);
  for (int64_t step = 1; step <= steps; ++step) {
    inputs[5] = Tensor::Scalar(DType::kI64, static_cast<double>(step));
    inputs[6] = Tensor::FromInts({2}, std::vector<int64_t>{3, step});
    const std::vector<Tensor> outputs = EvaluateNode(op, call, inputs);
    inputs[0] = outputs[0], inputs[2] = outputs[1], inputs[3] = outputs[2];
    if (outputs.size() == 5) inputs[7] = outputs[3], inputs[8] = outputs[4];
  }
  std::vector<double> v;
  for (int64_t i = 0; i < count; ++i) {
    const double number = inputs[3].at(i);
    v.push_back(state == DType::kU8 ? DynamicValue(CodeSigns::kUnsigned, static_cast<int>(number)) *
                                          inputs[8].at(i / kCodeBlock)
                                    : number);
  }
  return v;
}

double Mean(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double x : numbers) sum += x;
  return sum / static_cast<double>(numbers.size());
}

// 1 - 0.999^8000 is 0.9997.  An element wavers around it by 4 %: the root of half the rounding's
// variance over a step of 0.001.  Rounded to the nearest, v would stop at a quarter of it.
TEST(UpdateMoments, SecondMomentOfAConstantGradientConverges) {
  constexpr int64_t kSteps = 8000;
  const std::vector<double> grad(64, 0.7);
  const std::vector<double> v = SecondMoments(DType::kBF16, grad, kSteps);
  EXPECT_NEAR(Mean(v) / 0.49, 1, 0.02);
  for (const double x : v) EXPECT_NEAR(x / 0.49, 1, 0.25);
  float nearest = 0;
  for (int64_t step = 0; step < kSteps; ++step)
    nearest = BF16ToFloat(FloatToBF16(0.999F * nearest + 0.001F * 0.49F));
  EXPECT_LT(nearest, 0.4F * 0.49F);
}

// Elements of one block, a thousandfold apart: all go by the block's absmax, which is exact.
TEST(UpdateMoments, CodesOfConstantGradientsConverge) {
  std::vector<double> grad;
  for (int i = 0; i < 300; ++i) grad.push_back(std::pow(10.0, -1.5 * i / 300));
  const std::vector<double> v = SecondMoments(DType::kU8, grad, 2000);
  const double reached = 1 - std::pow(0.999, 2000);
  for (size_t i = 0; i < grad.size(); ++i) {
    const double expected = grad[i] * grad[i] * reached;
    EXPECT_NEAR(v[i] / expected, 1, 0.25) << grad[i];
  }
}

}  // namespace
}  // namespace ridge
