// LSTM, GRU and RNN as one operator give what their steps as nodes give.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ridge/onnx/import/converters/test_node.h"

namespace ridge {
namespace {

Tensor Wave(Dims dims, double phase) {
  Tensor tensor({DType::kF64, std::move(dims)});
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double value = std::sin(1.7 * static_cast<double>(i) + phase);
    StoreFromDouble(DType::kF64, tensor.mutable_data(), i, value);
  }
  return tensor;
}

struct Layer {
  const char* op;
  int64_t gates;
  const char* ours;  // the operator
  int outputs;       // Y, Y_h, Y_c
};
constexpr Layer kLayers[] = {{"LSTM", 4, "lstm", 3}, {"GRU", 3, "gru", 2}, {"RNN", 1, "rnn", 2}};
constexpr int64_t kSteps = 5, kBatch = 3, kInput = 3, kHidden = 4;

// X, W, R, B, perhaps sequence_lens, initial_h, and initial_c for LSTM.
TestNode MakeLayer(const Layer& layer, const char* direction, int64_t linear = 1,
                   const Tensor* lengths = nullptr) {
  const int64_t directions = std::string(direction) == "bidirectional" ? 2 : 1;
  const int64_t rows = layer.gates * kHidden;
  TestNode node(layer.op, 14, layer.outputs);
  node.Input("x", Wave({kSteps, kBatch, kInput}, 0));
  node.Input("w", Wave({directions, rows, kInput}, 1));
  node.Input("r", Wave({directions, rows, kHidden}, 2));
  node.Input("b", Wave({directions, 2 * rows}, 3));
  if (lengths == nullptr) {
    node.Absent();
  } else {
    node.Input("lengths", *lengths);
  }
  node.Input("h", Wave({directions, kBatch, kHidden}, 4));
  if (layer.outputs == 3) node.Input("c", Wave({directions, kBatch, kHidden}, 5));
  node.Int("hidden_size", kHidden).Text("direction", direction);
  if (layer.gates == 3) node.Int("linear_before_reset", linear);
  return node;
}

bool Uses(const TestNode& node, const std::string& op) {
  return (" " + node.Operators() + " ").find(" " + op + " ") != std::string::npos;
}

void ExpectSame(const std::vector<double>& got, const std::vector<double>& want, const char* op) {
  ASSERT_FALSE(want.empty()) << op;
  ASSERT_EQ(got.size(), want.size()) << op;
  for (size_t k = 0; k < want.size(); ++k) EXPECT_NEAR(got[k], want[k], 1e-12) << op << " " << k;
}

TEST(OnnxRecurrent, OneOperatorGivesWhatItsStepsGive) {
  for (const Layer& layer : kLayers) {
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      const TestNode whole = MakeLayer(layer, direction);
      TestNode steps = MakeLayer(layer, direction);
      steps.Float("clip", 1e6F);  // hides nothing, and has no operator of ours
      EXPECT_TRUE(Uses(whole, layer.ours)) << whole.Operators();
      EXPECT_FALSE(Uses(steps, layer.ours)) << steps.Operators();
      for (int i = 0; i < layer.outputs; ++i) ExpectSame(whole.Run(i), steps.Run(i), layer.op);
    }
  }
}

TEST(OnnxRecurrent, SequencesMayBeShorter) {
  for (const Layer& layer : kLayers) {
    const auto lengths =
        Tensor::FromInts({3}, std::vector<int64_t>{3, 0, 9});  // 9: more than there are
    const TestNode whole = MakeLayer(layer, "forward", 1, &lengths);
    TestNode steps = MakeLayer(layer, "forward", 1, &lengths);
    steps.Float("clip", 1e6F);
    EXPECT_TRUE(Uses(whole, layer.ours)) << whole.Operators();
    for (int i = 0; i < layer.outputs; ++i) ExpectSame(whole.Run(i), steps.Run(i), layer.op);
    EXPECT_FALSE(Uses(MakeLayer(layer, "reverse", 1, &lengths), layer.ours));
  }
}

TEST(OnnxRecurrent, ReluIsTheOtherActivationOfRnn) {
  TestNode whole = MakeLayer(kLayers[2], "forward"), steps = MakeLayer(kLayers[2], "forward");
  whole.Texts("activations", {"Relu"});
  steps.Texts("activations", {"Relu"}).Float("clip", 1e6F);
  EXPECT_TRUE(Uses(whole, "rnn"));
  ExpectSame(whole.Run(), steps.Run(), "RNN");
}

TEST(OnnxRecurrent, WhatTheOperatorsDoNotComputeStaysUnrolled) {
  TestNode softsign = MakeLayer(kLayers[0], "forward");
  softsign.Texts("activations", {"Sigmoid", "Softsign", "Tanh"});
  EXPECT_FALSE(Uses(softsign, "lstm"));
  TestNode coupled = MakeLayer(kLayers[0], "forward");
  coupled.Int("input_forget", 1);
  EXPECT_FALSE(Uses(coupled, "lstm"));
  TestNode peepholes = MakeLayer(kLayers[0], "forward");
  peepholes.Input("p", Wave({1, 3 * kHidden}, 6));
  EXPECT_FALSE(Uses(peepholes, "lstm"));
  const TestNode reset_first = MakeLayer(kLayers[1], "forward", /*linear=*/0);
  EXPECT_FALSE(Uses(reset_first, "gru"));
}

struct Activation {
  const char* name;
  std::vector<float> alpha, beta;
  double (*f)(double);
};

// One step with w = 1, r = 0 and h = 0 gives f(x).
TEST(OnnxRecurrent, EveryActivationIsItsFormula) {
  const Activation activations[] = {
      {"Affine", {}, {}, [](double x) { return x; }},
      {"Affine", {2}, {0.5}, [](double x) { return 2 * x + 0.5; }},
      {"Elu", {}, {}, [](double x) { return x > 0 ? x : std::exp(x) - 1; }},
      {"Elu", {2}, {}, [](double x) { return x > 0 ? x : 2 * (std::exp(x) - 1); }},
      {"HardSigmoid", {}, {}, [](double x) { return std::clamp(0.2 * x + 0.5, 0., 1.); }},
      {"HardSigmoid", {0.5}, {1}, [](double x) { return std::clamp(0.5 * x + 1, 0., 1.); }},
      {"LeakyRelu", {}, {}, [](double x) { return x > 0 ? x : 0.01 * x; }},
      {"LeakyRelu", {0.25}, {}, [](double x) { return x > 0 ? x : 0.25 * x; }},
      {"Relu", {}, {}, [](double x) { return std::max(x, 0.); }},
      {"ScaledTanh", {2}, {0.5}, [](double x) { return 2 * std::tanh(0.5 * x); }},
      {"Sigmoid", {}, {}, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"Softplus", {}, {}, [](double x) { return std::log1p(std::exp(x)); }},
      {"Softsign", {}, {}, [](double x) { return x / (1 + std::abs(x)); }},
      {"Tanh", {}, {}, [](double x) { return std::tanh(x); }},
      {"ThresholdedRelu", {}, {}, [](double x) { return x > 1 ? x : 0; }},
      {"ThresholdedRelu", {0.5}, {}, [](double x) { return x > 0.5 ? x : 0; }},
  };
  const std::vector<double> xs = {-3, -1, -0.25, 0, 0.25, 0.75, 1, 2.5, 4};
  Tensor x({DType::kF64, {1, static_cast<int64_t>(xs.size()), 1}}), one({DType::kF64, {1, 1, 1}});
  ConvertFromDouble(DType::kF64, xs.data(), x.mutable_data(), x.elements());
  const Tensor zero({DType::kF64, {1, 1, 1}});
  StoreFromDouble(DType::kF64, one.mutable_data(), 0, 1);
  for (const Activation& a : activations) {
    TestNode node("RNN", 14, 1);
    node.Input("x", x).Input("w", one).Input("r", zero);
    node.Texts("activations", {a.name}).Floats("activation_alpha", a.alpha);
    node.Floats("activation_beta", a.beta);
    EXPECT_EQ(node.Error(), "") << a.name;
    std::vector<double> want;
    for (double v : xs) want.push_back(a.f(v));
    ExpectSame(node.Run(), want, a.name);
  }
}

TEST(OnnxRecurrent, EveryGateTakesEveryActivation) {
  for (const char* name : {"Affine", "Elu", "HardSigmoid", "LeakyRelu", "Relu", "ScaledTanh",
                           "Softplus", "Softsign", "ThresholdedRelu"}) {
    TestNode lstm = MakeLayer(kLayers[0], "bidirectional"), gru = MakeLayer(kLayers[1], "reverse");
    lstm.Texts("activations", {name, name, name, name, name, name});
    gru.Texts("activations", {name, name});
    EXPECT_EQ(lstm.Error(), "") << name;
    EXPECT_EQ(gru.Error(), "") << name;
  }
}

}  // namespace
}  // namespace ridge
