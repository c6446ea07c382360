// Laws of the network operators that the case files cannot say: costs, dtypes of gradients, random
// masks over several calls, and many steps of an optimizer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "ridge/graph/autodiff.h"
#include "ridge/graph/interpret.h"
#include "ridge/graph/ops/shared/conv.h"
#include "ridge/graph/ops/shared/pool.h"

namespace ridge {
namespace {

OpCall MakeCall(const char* op, std::vector<TensorType> inputs, AttrMap attrs) {
  OpCall call{.where = op, .inputs = std::move(inputs), .outputs = {}, .attrs = std::move(attrs)};
  Result<std::vector<TensorType>> outputs = InferCall(*FindOp(op), call);
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  if (outputs.ok()) call.outputs = *outputs;
  return call;
}

Cost CostOf(const char* op, std::vector<TensorType> inputs, AttrMap attrs) {
  return CallCost(*FindOp(op), MakeCall(op, std::move(inputs), std::move(attrs)));
}

TensorType F32(Dims dims) { return {DType::kF32, std::move(dims)}; }

using Ints = std::vector<int64_t>;

// ---- windows ----

int64_t CountTapsOneByOne(const WindowAxis& axis) {
  int64_t taps = 0;
  for (int64_t o = 0; o < axis.output; ++o) {
    for (int64_t k = 0; k < axis.kernel; ++k) taps += axis.Inside(axis.InputAt(o, k));
  }
  return taps;
}

// Calls visit(axis) for axes with every mix of small parameters, outputs as conv has them.
template <typename Visit>
void ForEachSmallAxis(Visit visit) {
  for (int64_t code = 0; code < 7 * 4 * 3 * 3 * 5 * 6; ++code) {
    int64_t rest = code;
    const auto take = [&rest](int64_t count) {
      const int64_t digit = rest % count;
      rest /= count;
      return digit;
    };
    WindowAxis axis;
    axis.input = 1 + take(7);
    axis.kernel = 1 + take(4);
    axis.stride = 1 + take(3);
    axis.dilation = 1 + take(3);
    axis.pad_begin = take(5);
    axis.pad_end = take(6);
    const int64_t room = axis.input + axis.pad_begin + axis.pad_end - axis.span();
    if (room < 0) continue;
    axis.output = room / axis.stride + 1;
    visit(axis);
  }
}

TEST(WindowAxis, ClosedFormCountsTheTapsInside) {
  int64_t axes = 0;
  ForEachSmallAxis([&](const WindowAxis& axis) {
    ASSERT_EQ(axis.TapsInside(), CountTapsOneByOne(axis));
    ++axes;
  });
  EXPECT_GT(axes, 5000);
}

TEST(WindowAxis, OutputsOfATapAreExactlyThoseInside) {
  ForEachSmallAxis([](const WindowAxis& axis) {
    for (int64_t k = 0; k < axis.kernel; ++k) {
      const OutputRange range = axis.OutputsOfTap(k);
      for (int64_t o = 0; o < axis.output; ++o) {
        ASSERT_EQ(o >= range.first && o < range.last, axis.Inside(axis.InputAt(o, k)));
      }
    }
  });
}

TEST(WindowAxis, CountingTakesNoTimeInTheOutputs) {
  WindowAxis axis{.input = int64_t{1} << 40, .output = int64_t{1} << 40, .kernel = 3};
  axis.pad_begin = axis.pad_end = 1;
  EXPECT_EQ(axis.TapsInside(), 3 * (int64_t{1} << 40) - 2);
}

// ---- costs ----

TEST(ConvCost, CountsTwoForEachTapInsideTheImage) {
  // 3x3 over 4x4 with padding 1: per axis 4 outputs of 3 taps less one at each end = 10.
  const AttrMap attrs = {{"padding", Ints{1, 1, 1, 1}}};
  const Cost cost = CostOf("conv", {F32({2, 3, 4, 4}), F32({5, 3, 3, 3})}, attrs);
  EXPECT_EQ(cost.flops, 2 * 2 * 5 * 3 * 10 * 10);
  EXPECT_EQ(cost.bytes_read, 4 * (2 * 3 * 16 + 5 * 3 * 9));
  EXPECT_EQ(cost.bytes_written, 4 * 2 * 5 * 16);
}

TEST(ConvCost, OfTheGradientsIsThatOfTheForward) {
  const AttrMap window = {{"padding", Ints{1, 1, 1, 1}}, {"stride", Ints{2, 2}}};
  AttrMap input = window, weight = window;
  input["input_dims"] = Ints{2, 3, 9, 9};
  weight["weight_dims"] = Ints{5, 3, 3, 3};
  const TensorType x = F32({2, 3, 9, 9}), w = F32({5, 3, 3, 3}), dy = F32({2, 5, 5, 5});
  const int64_t flops = CostOf("conv", {x, w}, window).flops;
  EXPECT_EQ(flops, 2 * 2 * 5 * 3 * 13 * 13);
  EXPECT_EQ(CostOf("conv_grad_input", {dy, w}, input).flops, flops);
  EXPECT_EQ(CostOf("conv_grad_weight", {x, dy}, weight).flops, flops);
}

TEST(ConvCost, GroupsDivideTheWork) {
  const int64_t whole = CostOf("conv", {F32({1, 8, 5, 5}), F32({8, 8, 3, 3})}, {}).flops;
  const int64_t depthwise =
      CostOf("conv", {F32({1, 8, 5, 5}), F32({8, 1, 3, 3})}, {{"groups", 8}}).flops;
  EXPECT_EQ(whole, 8 * depthwise);
}

TEST(PoolCost, CountsTapsInsideTheImage) {
  const AttrMap attrs = {
      {"kernel", Ints{3, 3}}, {"stride", Ints{2, 2}}, {"padding", Ints{1, 1, 1, 1}}};
  // Per axis of 4: outputs at 0 (2 taps inside) and 2 (3 taps).
  EXPECT_EQ(CostOf("max_pool", {F32({2, 3, 4, 4})}, attrs).flops, 2 * 3 * 5 * 5);
}

TEST(GatherCost, DoesNotReadTheWholeTable) {
  const Cost cost = CostOf("gather", {F32({50000, 8}), {DType::kI64, {3}}}, {});
  EXPECT_EQ(cost.bytes_read, 3 * 8 * 4 + 3 * 8);
}

// ---- gradients in every dtype ----

struct Use {
  const char* op;
  std::vector<TensorType> inputs;
  AttrMap attrs;
};

// One use of each operator on arrays of `dtype`; s is the dtype of their statistics.
std::vector<Use> UsesIn(DType dtype) {
  const DType s = dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  const TensorType image{dtype, {2, 3, 4, 4}}, channel{s, {3}};
  const TensorType labels{DType::kI64, {5}}, logits{dtype, {5, 10}};
  const AttrMap pool = {{"kernel", Ints{2, 2}}, {"stride", Ints{2, 2}}};
  return {
      {"conv", {image, {dtype, {5, 3, 3, 3}}, {dtype, {5}}}, {}},
      {"max_pool", {image}, pool},
      {"avg_pool", {image}, pool},
      {"batch_norm", {image, channel, channel}, {}},
      {"batch_norm_inference", {image, channel, channel, channel, channel}, {}},
      {"layer_norm", {logits, {s, {10}}, {s, {10}}}, {}},
      {"layer_norm", {logits, OpCall::Absent(), {s, {10}}}, {}},
      {"softmax", {logits}, {}},
      {"log_softmax", {logits}, {}},
      {"softmax_cross_entropy", {logits, labels}, {}},
      {"softmax_cross_entropy_grad", {logits, labels, {s, {5}}}, {}},
      {"gather", {logits, labels}, {}},
      {"scatter_add", {labels, logits}, {{"dims", Ints{7, 10}}}},
      {"dropout", {logits, {DType::kI64, {3}}}, {}},
  };
}

// The sum of all float outputs as f64.
Value SumOfOutputs(const std::vector<Value>& outputs) {
  Value loss;
  for (Value y : outputs) {
    if (!IsFloat(y.dtype())) continue;
    const Value sum = Sum(Cast(y, DType::kF64));
    loss = loss.valid() ? loss + sum : sum;
  }
  return loss;
}

void ExpectGradientsOfTheInputsTypes(const Use& use) {
  GraphBuilder b("gradients");
  std::vector<Value> inputs, wanted;
  for (const TensorType& type : use.inputs) {
    inputs.push_back(type == OpCall::Absent() ? Value{} : b.Input("x", type));
    if (inputs.back().valid() && IsFloat(type.dtype)) wanted.push_back(inputs.back());
  }
  const Value loss = SumOfOutputs(OpOutputs(use.op, inputs, use.attrs));
  const auto grads = AppendGradients(b, loss, wanted);
  ASSERT_TRUE(grads.ok()) << use.op << ": " << grads.status().message();
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(TypeToString((*grads)[i].type()), TypeToString(wanted[i].type())) << use.op;
  }
}

TEST(NetworkOperators, GradientsHaveTheTypesOfTheirInputs) {
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
    for (const Use& use : UsesIn(dtype)) ExpectGradientsOfTheInputsTypes(use);
  }
}

TEST(Conv, RefusesTheGradientOfAnEpilogue) {
  GraphBuilder b("net");
  const Value x = b.Input("x", F32({1, 1, 3, 3}));
  const Value w = b.Parameter("w", F32({1, 1, 3, 3}), Init::Zeros());
  const Value y = Op("conv", {x, w}, {{"epilogue", "relu"}});
  const auto grads = AppendGradients(b, Sum(y), {w});
  ASSERT_FALSE(grads.ok());
  EXPECT_EQ(grads.status().code(), ErrorCode::kUnsupported);
}

TEST(Conv, GradientMakesOnlyWhatIsWanted) {
  const auto nodes_for = [](bool of_x, bool of_w, bool of_bias) {
    GraphBuilder b("net");
    const std::vector<Value> all = {b.Input("x", F32({1, 1, 3, 3})),
                                    b.Input("w", F32({2, 1, 2, 2})), b.Input("bias", F32({2}))};
    const Value loss = Sum(Op("conv", all));
    std::vector<Value> wanted;
    if (of_x) wanted.push_back(all[0]);
    if (of_w) wanted.push_back(all[1]);
    if (of_bias) wanted.push_back(all[2]);
    EXPECT_TRUE(AppendGradients(b, loss, wanted).ok());
    std::map<std::string, int> counts;
    for (const Node& node : b.graph().nodes()) ++counts[node.op->name];
    return counts;
  };
  auto only_bias = nodes_for(false, false, true);
  EXPECT_EQ(only_bias["conv_grad_input"] + only_bias["conv_grad_weight"], 0);
  auto first_layer = nodes_for(false, true, true);
  EXPECT_EQ(first_layer["conv_grad_input"], 0);
  EXPECT_EQ(first_layer["conv_grad_weight"], 1);
  auto only_x = nodes_for(true, false, false);
  EXPECT_EQ(only_x["conv_grad_input"], 1);
  EXPECT_EQ(only_x["conv_grad_weight"], 0);
}

// ---- dropout ----

Tensor Ones(Dims dims) {
  Tensor ones(F32(dims));
  for (int64_t i = 0; i < ones.elements(); ++i) ones.as_mutable<float>()[i] = 1;
  return ones;
}

Tensor Dropout(Dims dims, Ints rng, double rate, int64_t stream = 1) {
  const Tensor x = Ones(std::move(dims)), state = Tensor::FromInts({3}, rng);
  const OpCall call =
      MakeCall("dropout", {x.type(), state.type()}, {{"rate", rate}, {"stream", stream}});
  return EvaluateNode(*FindOp("dropout"), call, {x, state})[0];
}

TEST(Dropout, KeepsOneMinusRateAndTheMean) {
  for (double rate : {0.1, 0.5, 0.9}) {
    const Tensor y = Dropout({100, 1000}, {7, 0, 0}, rate);
    double kept = 0, sum = 0;
    for (int64_t i = 0; i < y.elements(); ++i) {
      kept += y.at(i) != 0;
      sum += y.at(i);
    }
    // Five standard deviations of a binomial share over 1e5 draws.
    EXPECT_NEAR(kept / 1e5, 1 - rate, 5 * std::sqrt(rate * (1 - rate) / 1e5));
    EXPECT_NEAR(sum / 1e5, kept / 1e5 / (1 - rate), 1e-6);
  }
}

TEST(Dropout, ABatchDrawsWhatItsPartsDraw) {
  const Tensor whole = Dropout({6, 11}, {3, 9, 40}, 0.5);
  const Tensor first = Dropout({2, 11}, {3, 9, 40}, 0.5);
  const Tensor rest = Dropout({4, 11}, {3, 9, 42}, 0.5);
  for (int64_t i = 0; i < whole.elements(); ++i) {
    EXPECT_EQ(whole.at(i), i < 22 ? first.at(i) : rest.at(i - 22)) << i;
  }
}

TEST(Dropout, SeedStepStreamAndSampleEachChangeTheMask) {
  const Tensor base = Dropout({4, 16}, {3, 9, 40}, 0.5);
  EXPECT_TRUE(base.same_bits(Dropout({4, 16}, {3, 9, 40}, 0.5)));
  EXPECT_FALSE(base.same_bits(Dropout({4, 16}, {4, 9, 40}, 0.5)));
  EXPECT_FALSE(base.same_bits(Dropout({4, 16}, {3, 10, 40}, 0.5)));
  EXPECT_FALSE(base.same_bits(Dropout({4, 16}, {3, 9, 41}, 0.5)));
  EXPECT_FALSE(base.same_bits(Dropout({4, 16}, {3, 9, 40}, 0.5, /*stream=*/2)));
}

// ---- optimizers ----

// Minimizes (param - 3)^2 / 2 from 0 with `op`; inputs after grad are made by `others`.
double MinimizeParabola(const char* op, const AttrMap& attrs, std::vector<Tensor> others,
                        const std::vector<std::pair<size_t, size_t>>& state, int steps) {
  std::vector<Tensor> inputs = {Tensor::Scalar(DType::kF64, 0), Tensor::Scalar(DType::kF64, 0)};
  for (Tensor& other : others) inputs.push_back(std::move(other));
  for (int step = 1; step <= steps; ++step) {
    inputs[1] = Tensor::Scalar(DType::kF64, inputs[0].at(0) - 3);
    std::vector<TensorType> types;
    for (Tensor& input : inputs) {
      if (input.type() == TensorType{DType::kI64, {}}) input = Tensor::Scalar(DType::kI64, step);
      types.push_back(input.type());
    }
    const OpCall call = MakeCall(op, types, attrs);
    const std::vector<Tensor> outputs = EvaluateNode(*FindOp(op), call, inputs);
    for (const auto& [output, input] : state) inputs[input] = outputs[output];
  }
  return inputs[0].at(0);
}

TEST(SgdUpdate, MomentumReachesTheMinimum) {
  const auto scalar = [](double value) { return Tensor::Scalar(DType::kF64, value); };
  for (int64_t nesterov : {0, 1}) {
    const AttrMap attrs = {{"momentum", 0.9}, {"nesterov", nesterov}};
    const double end =
        MinimizeParabola("sgd_update", attrs, {scalar(0.1), scalar(0)}, {{0, 0}, {1, 3}}, 500);
    EXPECT_NEAR(end, 3, 1e-6);
  }
}

TEST(AdamUpdate, FirstStepHasTheSizeOfTheLearningRate) {
  const auto scalar = [](double value) { return Tensor::Scalar(DType::kF64, value); };
  const double end = MinimizeParabola(
      "adam_update", {}, {scalar(0), scalar(0), scalar(0.01), Tensor::Scalar(DType::kI64, 1)},
      {{0, 0}, {1, 2}, {2, 3}}, 1);
  EXPECT_NEAR(end, 0.01, 1e-9);  // epsilon takes 3e-11
}

TEST(AdamUpdate, ReachesTheMinimum) {
  const auto scalar = [](double value) { return Tensor::Scalar(DType::kF64, value); };
  const double end = MinimizeParabola(
      "adam_update", {}, {scalar(0), scalar(0), scalar(0.05), Tensor::Scalar(DType::kI64, 1)},
      {{0, 0}, {1, 2}, {2, 3}}, 2000);
  EXPECT_NEAR(end, 3, 1e-3);
}

}  // namespace
}  // namespace ridge
