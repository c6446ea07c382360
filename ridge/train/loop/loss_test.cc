#include "ridge/learn/loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ridge/graph/autodiff.h"
#include "ridge/graph/builder.h"
#include "ridge/learn/training_graph.h"
#include "ridge/train/loop/run_once.h"
#include "ridge/train/options/test_machine.h"

namespace ridge {
namespace {

using ::testing::HasSubstr;

// A graph whose output `y` is its input `x`, or `op` of it.
Graph Identity(Dims dims, const char* op = "", AttrMap attrs = {}, DType dtype = DType::kF64) {
  GraphBuilder b("net");
  std::vector<std::string> names(dims.size());
  names[0] = "batch";
  const Value x = b.Input("x", {dtype, std::move(dims)}, names);
  b.Output("y", *op == '\0' ? x : Op(op, {x}, std::move(attrs)));
  Result<Graph> graph = b.Build();
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return std::move(*graph);
}

Graph Lossy(const Graph& forward, const std::string& loss, const std::vector<Field>& fields = {}) {
  Result<Graph> graph = WithLoss(forward, loss, fields);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? std::move(*graph) : Graph();
}

Field LabelField(Dims dims) { return {"label", {DType::kI64, std::move(dims)}}; }

Tensor Doubles(Dims dims, const std::vector<double>& values) {
  Tensor tensor({DType::kF64, std::move(dims)});
  std::copy(values.begin(), values.end(), tensor.as_mutable<double>());
  return tensor;
}

double LossOf(const Graph& graph, const std::map<std::string, Tensor>& inputs) {
  const TestMachine machine;
  const auto outputs = RunGraph(graph, inputs, 0, machine.get());
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  for (const auto& [name, tensor] : *outputs) {
    if (name == "loss") return tensor.at(0);
  }
  ADD_FAILURE() << "no loss";
  return 0;
}

std::string ErrorOf(const Graph& forward, const std::string& loss) {
  const Result<Graph> graph = WithLoss(forward, loss);
  EXPECT_FALSE(graph.ok());
  return graph.status().message();
}

TensorType InputType(const Graph& graph, const std::string& name) {
  const ValueId id = graph.FindValue(name);
  return id == kNoValue ? TensorType{} : graph.type(id);
}

const std::vector<double> kRow = {1, 2, 4};
double RowLoss(int label) {
  return std::log(std::exp(1.0) + std::exp(2.0) + std::exp(4.0)) - kRow[static_cast<size_t>(label)];
}

TEST(LossTest, TheTextNamesAKindAndAnOutput) {
  EXPECT_EQ(ParseLoss("mse:y")->kind, LossKind::kMse);
  EXPECT_EQ(ParseLoss("bce:y:0")->output, "y:0");
  EXPECT_EQ(ParseLoss("cross_entropy:/head/Add")->output, "/head/Add");
  EXPECT_EQ(ParseLoss("head:0")->kind, LossKind::kOutput);
  EXPECT_FALSE(ParseLoss("mse:").ok());
}

TEST(LossTest, CrossEntropyIsTheMeanOverTheRows) {
  const Graph graph = Lossy(Identity({2, 3}), "cross_entropy:y");
  EXPECT_NEAR(LossOf(graph, {{"x", Doubles({2, 3}, {1, 2, 4, 1, 2, 4})},
                             {"label", Tensor::FromInts({2}, std::vector<int64_t>{0, 2})}}),
              (RowLoss(0) + RowLoss(2)) / 2, 1e-12);
}

TEST(LossTest, IgnoredLabelsDoNotCount) {
  const Graph graph = Lossy(Identity({2, 3}), "cross_entropy:y");
  const Tensor x = Doubles({2, 3}, {1, 2, 4, 1, 2, 4});
  EXPECT_NEAR(
      LossOf(graph, {{"x", x}, {"label", Tensor::FromInts({2}, std::vector<int64_t>{-100, 1})}}),
      RowLoss(1), 1e-12);
  EXPECT_EQ(
      LossOf(graph, {{"x", x}, {"label", Tensor::FromInts({2}, std::vector<int64_t>{-100, -100})}}),
      0);
}

// Their rows have no gradient, and the others share what is theirs.
TEST(LossTest, IgnoredLabelsHaveNoGradient) {
  const Graph graph = Lossy(Identity({2, 3}), "cross_entropy:y");
  GraphBuilder b(graph);
  const auto gradients =
      AppendGradients(b, b.At(graph.FindOutput("loss")), {b.At(graph.FindValue("x"))});
  ASSERT_TRUE(gradients.ok());
  b.Output("dx", (*gradients)[0]);
  const TestMachine machine;
  const auto outputs = RunGraph(*b.Build(),
                                {{"x", Doubles({2, 3}, {1, 2, 4, 1, 2, 4})},
                                 {"label", Tensor::FromInts({2}, std::vector<int64_t>{-100, 1})}},
                                0, machine.get());
  ASSERT_TRUE(outputs.ok());
  const Tensor& dx = outputs->back().second;
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(dx.at(i), 0);
  const double sum = std::exp(1.0) + std::exp(2.0) + std::exp(4.0);
  EXPECT_NEAR(dx.at(3), std::exp(1.0) / sum, 1e-12);
  EXPECT_NEAR(dx.at(4), std::exp(2.0) / sum - 1, 1e-12);
}

// An evaluation divides by the labels that count over all batches, not batch by batch.
TEST(LossTest, AnEvaluationWeighsSamplesByTheirLabels) {
  const Graph graph = Lossy(Identity({2, 2, 3}), "cross_entropy:y",
                            {{"x", {DType::kF64, {2, 3}}}, LabelField({2})});
  const Result<NamedGraph> eval = BuildEvalGraph(graph);
  ASSERT_TRUE(eval.ok()) << eval.status().message();
  const TestMachine machine;
  const auto outputs =
      RunGraph(eval->graph,
               {{"x", Doubles({2, 2, 3}, {1, 2, 4, 1, 2, 4, 1, 2, 4, 1, 2, 4})},
                {"label", Tensor::FromInts({2, 2}, std::vector<int64_t>{2, 0, -100, 2})},
                {kWeightInput, Tensor::FromFloats({2}, std::vector<float>{1, 1})}},
               0, machine.get());
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  std::map<std::string, double> values;
  for (const auto& [name, tensor] : *outputs) values[name] = tensor.at(0);
  EXPECT_NEAR(values["loss_sum"], 2 * (RowLoss(2) + RowLoss(0) + RowLoss(2)), 1e-9);
  EXPECT_NEAR(values["loss_weight_sum"], 2 * 3, 1e-9);  // both times the batch
  EXPECT_EQ(values["correct_sum"], 2);
  EXPECT_EQ(values["label_sum"], 3);
  EXPECT_EQ(values["weight_sum"], 2);
}

TEST(LossTest, TheShapeOfTheLabelsSaysWhereTheClassesAre) {
  const auto label = [](Dims output, const std::vector<Field>& fields) {
    return InputType(Lossy(Identity(std::move(output)), "cross_entropy:y", fields), "label").dims;
  };
  EXPECT_EQ(label({2, 3}, {}), (Dims{2}));
  // Images [N,C,H,W] and sequences [N,T,C], also without data.
  EXPECT_EQ(label({2, 5, 4, 6}, {LabelField({4, 6})}), (Dims{2, 4, 6}));
  EXPECT_EQ(label({2, 5, 4, 6}, {}), (Dims{2, 4, 6}));
  EXPECT_EQ(label({2, 7, 5}, {LabelField({7})}), (Dims{2, 7}));
  EXPECT_EQ(label({2, 7, 5}, {}), (Dims{2, 7}));
  // The other way round, where the labels say so.
  EXPECT_EQ(label({2, 4, 6, 5}, {LabelField({4, 6})}), (Dims{2, 4, 6}));
  EXPECT_EQ(label({2, 5, 7}, {LabelField({7})}), (Dims{2, 7}));
  // A channel of extent 1 around the labels changes nothing.
  EXPECT_EQ(label({2, 5, 4, 6}, {LabelField({1, 4, 6})}), (Dims{2, 4, 6}));
}

TEST(LossTest, ClassesInTheMiddleAreMovedNotMixedUp) {
  const Graph graph = Lossy(Identity({1, 3, 2, 1}), "cross_entropy:y");
  // Pixel 0 has the logits 1, 2, 4; pixel 1 has 0, 0, 0.
  EXPECT_NEAR(LossOf(graph, {{"x", Doubles({1, 3, 2, 1}, {1, 0, 2, 0, 4, 0})},
                             {"label", Tensor::FromInts({1, 2, 1}, std::vector<int64_t>{1, 0})}}),
              (RowLoss(1) + std::log(3.0)) / 2, 1e-12);
}

TEST(LossTest, SoftmaxOverTheClassesIsLookedThroughAndOthersAreNot) {
  const auto reads_x = [](const Graph& graph) {
    for (const Node& node : graph.nodes()) {
      if (node.op->name == "softmax_cross_entropy")
        return graph.value(node.inputs[0]).kind == ValueKind::kInput;
    }
    return false;
  };
  for (const char* op : {"softmax", "log_softmax"}) {
    EXPECT_TRUE(reads_x(Lossy(Identity({2, 3}, op, {{"axis", -1}}), "cross_entropy:y")));
    EXPECT_FALSE(reads_x(Lossy(Identity({2, 3}, op, {{"axis", 0}}), "cross_entropy:y")));
  }
}

TEST(LossTest, MeanSquareAndBinaryCrossEntropyByHand) {
  const Tensor x = Doubles({2, 1}, {0.5, -2}), t = Doubles({2, 1}, {1, 0});
  EXPECT_NEAR(LossOf(Lossy(Identity({2, 1}), "mse:y"), {{"x", x}, {"target", t}}), (0.25 + 4) / 2,
              1e-12);
  const double bce = (std::log(1 + std::exp(-0.5)) + std::log(1 + std::exp(-2.0))) / 2;
  EXPECT_NEAR(LossOf(Lossy(Identity({2, 1}), "bce:y"), {{"x", x}, {"target", t}}), bce, 1e-12);
  EXPECT_NEAR(LossOf(Lossy(Identity({2, 1}, "sigmoid"), "bce:y"), {{"x", x}, {"target", t}}), bce,
              1e-12);
}

TEST(LossTest, BinaryCrossEntropyStaysFiniteFarFromZero) {
  const Graph graph = Lossy(Identity({2, 1}, "sigmoid"), "bce:y");
  EXPECT_NEAR(
      LossOf(graph, {{"x", Doubles({2, 1}, {1000, -1000})}, {"target", Doubles({2, 1}, {0, 1})}}),
      1000, 1e-9);
}

TEST(LossTest, HalfPrecisionIsSummedInSingle) {
  const Graph graph = Lossy(Identity({4, 2}, "", {}, DType::kBF16), "mse:y");
  EXPECT_EQ(graph.type(graph.FindOutput("loss")).dtype, DType::kF32);
  EXPECT_EQ(InputType(graph, "target").dtype, DType::kBF16);
}

TEST(LossTest, WhatCannotBeALossIsRefusedWithTheOutputs) {
  EXPECT_THAT(ErrorOf(Identity({2, 3}), ""), HasSubstr("--loss cross_entropy:y"));
  EXPECT_THAT(ErrorOf(Identity({2, 3}), "cross_entropy:z"), HasSubstr("which is no output"));
  EXPECT_THAT(ErrorOf(Identity({2, 3}), "y"), HasSubstr("a loss is one float"));
  EXPECT_THAT(ErrorOf(Identity({2}), "cross_entropy:y"),
              HasSubstr("dimensions for batch and classes; 'y' is f64[2]"));
  EXPECT_THAT(ErrorOf(Identity({2, 3}, "", {}, DType::kI64), "mse:y"), HasSubstr("float output"));
}

}  // namespace
}  // namespace ridge
