#include "ridge/learn/training_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ridge/graph/interpret.h"
#include "ridge/graph/text.h"
#include "ridge/graph/verify.h"
#include "ridge/learn/inference_form.h"
#include "ridge/models/model.h"

namespace ridge {
namespace {

using testing::HasSubstr;

Graph Parse(const std::string& body) {
  Result<Graph> graph = ParseGraph("graph net\n" + body, "net.ridge");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? std::move(*graph) : Graph();
}

// y = w * x summed: loss = mean over the batch; the gradient of w is the mean of x.
const char kLinear[] =
    "  x = input f64[batch=4,2]\n"
    "  w = parameter f64[2] init=constant(1)\n"
    "  p = mul(x, w)\n"
    "  each = reduce_sum(p, axes=[1])\n"
    "  loss = reduce_mean(each)\n"
    "  output loss\n";

class Tensors {
 public:
  explicit Tensors(const Graph& graph, std::map<std::string, Tensor> given) : graph_(graph) {
    Result<std::vector<Tensor>> values = EvaluateGraph(graph, given);
    EXPECT_TRUE(values.ok()) << values.status().message();
    if (values.ok()) values_ = std::move(*values);
  }
  double Output(const std::string& name, int64_t i = 0) const {
    return values_.at(static_cast<size_t>(graph_.FindOutput(name))).at(i);
  }
  // What a variable becomes.
  double Updated(const std::string& name, int64_t i) const {
    for (const GraphUpdate& update : graph_.updates()) {
      if (graph_.value(update.variable).name == name)
        return values_.at(static_cast<size_t>(update.value)).at(i);
    }
    ADD_FAILURE() << name << " is not updated";
    return 0;
  }

 private:
  const Graph& graph_;
  std::vector<Tensor> values_;
};

Tensor Doubles(Dims dims, const std::vector<double>& values) {
  Tensor tensor({DType::kF64, std::move(dims)});
  for (size_t i = 0; i < values.size(); ++i)
    StoreFromDouble(DType::kF64, tensor.mutable_data(), static_cast<int64_t>(i), values[i]);
  return tensor;
}

std::map<std::string, Tensor> LinearInputs() {
  return {{"x", Doubles({4, 2}, {1, 0, 2, 0, 3, 8, 6, 8})},  // column means 3 and 4
          {"ridge.lr", Tensor::Scalar(DType::kF64, 0.1)},
          {"ridge.step", Tensor::Scalar(DType::kI64, 1)}};
}

TrainingGraphOptions Sgd(double clip_norm = 0, int64_t accumulate = 1) {
  TrainingGraphOptions options;
  options.optimizer.name = "sgd";
  options.clip_norm = clip_norm;
  options.accumulate = accumulate;
  return options;
}

std::vector<NamedGraph> Build(const Graph& forward, const TrainingGraphOptions& options) {
  Result<std::vector<NamedGraph>> graphs = BuildTrainingGraphs(forward, options);
  EXPECT_TRUE(graphs.ok()) << graphs.status().message();
  if (!graphs.ok()) return {};
  for (const NamedGraph& named : *graphs) {
    const Status status = CheckGraph(named.graph);
    EXPECT_TRUE(status.ok()) << named.name << ": " << status.message();
  }
  return std::move(*graphs);
}

std::string TrainError(const Graph& forward, const TrainingGraphOptions& options = {}) {
  return BuildTrainingGraphs(forward, options).status().message();
}

TEST(TrainingGraphTest, SgdStepsAgainstTheGradient) {
  const std::vector<NamedGraph> graphs = Build(Parse(kLinear), Sgd());
  ASSERT_EQ(graphs.size(), 1u);
  EXPECT_EQ(graphs[0].name, "train");
  const Tensors t(graphs[0].graph, LinearInputs());
  EXPECT_DOUBLE_EQ(t.Output("loss"), 7);
  EXPECT_DOUBLE_EQ(t.Updated("w", 0), 1 - 0.1 * 3);
  EXPECT_DOUBLE_EQ(t.Updated("w", 1), 1 - 0.1 * 4);
}

// Its own update of w stays, and no optimizer comes on top.
TEST(TrainingGraphTest, AGraphThatUpdatesItsParametersIsTheStep) {
  const Graph forward = Parse(std::string(kLinear) +
                              "  ridge.lr = input f64[]\n"
                              "  next = mul(w, ridge.lr)\n"
                              "  update w = next\n");
  const Result<ForwardInfo> facts = InspectForward(forward);
  ASSERT_TRUE(facts.ok()) << facts.status().message();
  EXPECT_TRUE(facts->has_optimizer);
  EXPECT_EQ(facts->data_inputs.size(), 1u);
  const std::vector<NamedGraph> graphs = Build(forward, Sgd());
  ASSERT_EQ(graphs.size(), 1u);
  EXPECT_EQ(graphs[0].name, "train");
  EXPECT_EQ(graphs[0].graph.FindValue("ridge.step"), kNoValue);
  std::map<std::string, Tensor> inputs = LinearInputs();
  inputs.erase("ridge.step");
  const Tensors t(graphs[0].graph, inputs);
  EXPECT_DOUBLE_EQ(t.Output("loss"), 7);
  EXPECT_DOUBLE_EQ(t.Updated("w", 0), 0.1);
  EXPECT_THAT(TrainError(forward, Sgd(/*clip_norm=*/2)), HasSubstr("--clip-norm"));
  EXPECT_THAT(TrainError(forward, Sgd(0, /*accumulate=*/2)), HasSubstr("--accumulate"));
  const Result<NamedGraph> eval = BuildEvalGraph(forward);
  ASSERT_TRUE(eval.ok()) << eval.status().message();
  EXPECT_TRUE(eval->graph.updates().empty());
}

// The gradient (3, 4) has norm 5; clipped to 2 it is scaled by 2 / (5 + 1e-6).
TEST(TrainingGraphTest, ClippingScalesToTheGlobalNorm) {
  const std::vector<NamedGraph> clipped = Build(Parse(kLinear), Sgd(/*clip_norm=*/2));
  const Tensors t(clipped[0].graph, LinearInputs());
  EXPECT_DOUBLE_EQ(t.Output("grad_norm"), 5);
  EXPECT_DOUBLE_EQ(t.Updated("w", 0), 1 - 0.1 * 3 * (2 / (5 + 1e-6)));
  EXPECT_DOUBLE_EQ(t.Updated("w", 1), 1 - 0.1 * 4 * (2 / (5 + 1e-6)));
  const std::vector<NamedGraph> loose = Build(Parse(kLinear), Sgd(/*clip_norm=*/50));
  EXPECT_DOUBLE_EQ(Tensors(loose[0].graph, LinearInputs()).Updated("w", 1), 1 - 0.1 * 4);
}

TEST(TrainingGraphTest, AccumulatorsAddAndTheUpdateTakesTheirMeanAndClearsThem) {
  const std::vector<NamedGraph> graphs = Build(Parse(kLinear), Sgd(/*clip_norm=*/0, 2));
  ASSERT_EQ(graphs.size(), 2u);
  EXPECT_EQ(graphs[0].name, "micro");
  EXPECT_EQ(graphs[1].name, "update");
  std::map<std::string, Tensor> given = LinearInputs();
  given["w.grad_sum"] = Doubles({2}, {10, 20});
  const Tensors micro(graphs[0].graph, given);
  EXPECT_DOUBLE_EQ(micro.Updated("w.grad_sum", 0), 13);
  EXPECT_DOUBLE_EQ(micro.Updated("w.grad_sum", 1), 24);
  const Tensors update(graphs[1].graph, given);
  EXPECT_DOUBLE_EQ(update.Updated("w", 0), 1 - 0.1 * 10 / 2);
  EXPECT_DOUBLE_EQ(update.Updated("w", 1), 1 - 0.1 * 20 / 2);
  EXPECT_EQ(update.Updated("w.grad_sum", 0), 0);
}

TEST(TrainingGraphTest, FrozenParametersAreNotTouched) {
  std::string text = kLinear;
  text.replace(text.find("init=constant(1)"), 16, "init=constant(1) frozen=1");
  EXPECT_EQ(TrainError(Parse(text)), "net: no trainable parameter");
  const Graph graph = Parse(text +
                            "  v = parameter f64[2] init=zeros\n"
                            "  q = mul(p, v)\n"
                            "  loss2 = reduce_mean(q)\n");
  Graph two = graph;
  two.ClearOutputs();
  two.AddOutput("loss", graph.FindValue("loss2"));
  const std::vector<NamedGraph> graphs = Build(two, Sgd());
  ASSERT_EQ(graphs[0].graph.updates().size(), 1u);
  EXPECT_EQ(graphs[0].graph.value(graphs[0].graph.updates()[0].variable).name, "v");
}

TEST(TrainingGraphTest, AdamHasTwoStatesAParameterOfItsShape) {
  const Result<Graph> cnn = BuildModel("cnn", {.batch = 4});
  const std::vector<NamedGraph> graphs = Build(*cnn, {});
  const Graph& graph = graphs[0].graph;
  EXPECT_EQ(graph.ValuesOfKind(ValueKind::kState).size(), 8u);
  EXPECT_EQ(graph.updates().size(), 12u);
  const ValueId m = graph.FindValue("4.weight.m");
  ASSERT_NE(m, kNoValue);
  EXPECT_EQ(graph.type(m), graph.type(graph.FindValue("4.weight")));
  EXPECT_EQ(graph.value(m).role, ValueRole::kOptimizer);
  EXPECT_NE(graph.FindOutput("correct"), kNoValue);
}

// logits = x * w with w = 1, so dw = x * (softmax - the label's share), by the mean over the batch.
constexpr char kClassifier[] =
    "  x = input f64[batch=2,3]\n"
    "  label = input i64[batch=2]\n"
    "  w = parameter f64[3] init=constant(1)\n"
    "  logits = mul(x, w)\n"
    "  each = softmax_cross_entropy(logits, label)\n"
    "  loss = reduce_mean(each)\n"
    "  output loss\n";

TEST(TrainingGraphTest, MixedLabelsShareTheLossByTheirWeights) {
  TrainingGraphOptions options = Sgd();
  options.mixes_labels = true;
  const std::vector<NamedGraph> graphs = Build(Parse(kClassifier), options);
  ASSERT_EQ(graphs.size(), 1u);
  const Graph& graph = graphs[0].graph;
  std::map<std::string, Tensor> inputs;
  const std::vector<double> x = {1, 2, 3, 0, -1, 0.5};
  inputs["x"] = Doubles({2, 3}, x);
  const std::vector<int64_t> labels = {2, 0}, others = {0, 0};
  const std::vector<float> weights = {0.75F, 0.5F};
  Tensor label({DType::kI64, {2}}), other({DType::kI64, {2}}), weight({DType::kF32, {2}});
  std::copy(labels.begin(), labels.end(), label.as_mutable<int64_t>());
  std::copy(others.begin(), others.end(), other.as_mutable<int64_t>());
  std::copy(weights.begin(), weights.end(), weight.as_mutable<float>());
  inputs["label"] = label;
  inputs[kOtherLabelInput] = other;
  inputs[kLabelWeightInput] = weight;
  for (const auto& [name, value] : LinearInputs()) inputs.emplace(name, value);
  const Tensors t(graph, inputs);
  double loss = 0, dw0 = 0;
  for (size_t row = 0; row < 2; ++row) {
    double sum = 0;
    for (size_t c = 0; c < 3; ++c) sum += std::exp(x[3 * row + c]);
    const auto a = static_cast<size_t>(labels[row]), b = static_cast<size_t>(others[row]);
    const double share = weights[row];
    loss += std::log(sum) - share * x[3 * row + a] - (1 - share) * x[3 * row + b];
    const double target = (a == 0 ? share : 0) + (b == 0 ? 1 - share : 0);
    dw0 += x[3 * row] * (std::exp(x[3 * row]) / sum - target);
  }
  EXPECT_NEAR(t.Output("loss"), loss / 2, 1e-12);
  EXPECT_NEAR(t.Updated("w", 0), 1 - 0.1 * dw0 / 2, 1e-12);
}

// The loss of torch.nn.functional.cross_entropy with the mixed one-hot labels as probabilities.
TEST(TrainingGraphTest, MixedLabelsAreSmoothed) {
  TrainingGraphOptions options = Sgd();
  options.mixes_labels = true;
  options.label_smoothing = 0.1;
  const std::vector<NamedGraph> graphs = Build(Parse(kClassifier), options);
  ASSERT_EQ(graphs.size(), 1u);
  std::map<std::string, Tensor> inputs;
  const std::vector<double> x = {1, 2, 3, 0, -1, 0.5};
  inputs["x"] = Doubles({2, 3}, x);
  Tensor label({DType::kI64, {2}}), other({DType::kI64, {2}}), weight({DType::kF32, {2}});
  const int64_t labels[] = {2, 0}, others[] = {0, 0};
  const float weights[] = {0.75F, 0.5F};
  std::copy_n(labels, 2, label.as_mutable<int64_t>());
  std::copy_n(others, 2, other.as_mutable<int64_t>());
  std::copy_n(weights, 2, weight.as_mutable<float>());
  inputs["label"] = label;
  inputs[kOtherLabelInput] = other;
  inputs[kLabelWeightInput] = weight;
  for (const auto& [name, value] : LinearInputs()) inputs.emplace(name, value);
  double loss = 0;
  for (size_t row = 0; row < 2; ++row) {
    double sum = 0, want[3] = {0.1 / 3, 0.1 / 3, 0.1 / 3};
    want[labels[row]] += 0.9 * weights[row];
    want[others[row]] += 0.9 * (1 - weights[row]);
    for (size_t c = 0; c < 3; ++c) sum += std::exp(x[3 * row + c]);
    for (size_t c = 0; c < 3; ++c) loss += want[c] * (std::log(sum) - x[3 * row + c]);
  }
  EXPECT_NEAR(Tensors(graphs[0].graph, inputs).Output("loss"), loss / 2, 1e-12);
}

TEST(TrainingGraphTest, OnlyTheMeanCrossEntropyIsMixed) {
  TrainingGraphOptions options = Sgd();
  options.mixes_labels = true;
  EXPECT_EQ(TrainError(Parse(kLinear), options),
            "net: --augment mixup and cutmix need a loss that is the mean cross entropy of one "
            "class a sample");
}

TEST(TrainingGraphTest, WhatCannotBeTrainedIsSaid) {
  EXPECT_EQ(TrainError(Parse("  x = input f32[4,2]\n  output y = x\n")),
            "net: no output 'loss' (it has: y). hint: end the graph with 'output loss'");
  EXPECT_EQ(TrainError(Parse("  x = input f32[4,2]\n  output loss = x\n")),
            "net: the output 'loss' is f32[4,2]; it must be one float. hint: loss = "
            "reduce_mean(...)");
  EXPECT_EQ(TrainError(Parse("  x = input f32[batch,2]\n  loss = reduce_mean(x)\n  output loss\n")),
            "net: dimensions without a size: batch. hint: --batch sets 'batch'; write others as "
            "f32[batch, length=128]");
  EXPECT_EQ(TrainError(Parse("  x = input f32[4,2]\n  y = input f32[3]\n  a = reduce_mean(x)\n"
                             "  b = reduce_mean(y)\n  loss = add(a, b)\n  output loss\n")),
            "net: input 'y' is f32[3]; the first extent of every input must be the batch, 4");
  EXPECT_EQ(TrainError(Parse(
                "  ridge.lr = input f32[4,2]\n  loss = reduce_mean(ridge.lr)\n  output loss\n")),
            "net: the name 'ridge.lr' belongs to the trainer; rename that value");
  TrainingGraphOptions options;
  options.optimizer.name = "adan";
  EXPECT_EQ(TrainError(Parse(kLinear), options),
            "no optimizer 'adan'; did you mean 'adam'? (there are: sgd, adam, adamw)");
}

// --- evaluation and inference ---

TEST(EvalGraphTest, WeightsCountAndPaddingDoesNot) {
  const Result<NamedGraph> eval = BuildEvalGraph(Parse(kLinear));
  ASSERT_TRUE(eval.ok()) << eval.status().message();
  std::map<std::string, Tensor> given = LinearInputs();
  given.erase("ridge.lr");
  given["ridge.weight"] = Tensor::FromFloats({4}, std::vector<float>{1, 1, 0, 1});
  const Tensors t(eval->graph, given);
  EXPECT_DOUBLE_EQ(t.Output("loss_sum"), 1 + 2 + 14);
  EXPECT_DOUBLE_EQ(t.Output("weight_sum"), 3);
  EXPECT_EQ(eval->graph.FindOutput("correct_sum"), kNoValue);  // no labels
  EXPECT_TRUE(eval->graph.updates().empty());
}

TEST(EvalGraphTest, ALossWithAPenaltyAndAScaleIsTakenApart) {
  const std::string text =
      "  x = input f64[batch=4,2]\n"
      "  w = parameter f64[2] init=constant(1)\n"
      "  p = mul(x, w)\n"
      "  mean = reduce_mean(p)\n"
      "  half = constant f64[] [0.5]\n"
      "  scaled = mul(mean, half)\n"
      "  squares = mul(w, w)\n"
      "  penalty = reduce_sum(squares)\n"
      "  loss = add(scaled, penalty)\n"
      "  output loss\n";
  const Result<NamedGraph> eval = BuildEvalGraph(Parse(text));
  ASSERT_TRUE(eval.ok()) << eval.status().message();
  const Tensors t(eval->graph,
                  {{"x", Doubles({4, 2}, {1, 0, 2, 0, 3, 8, 6, 8})},
                   {"ridge.weight", Tensor::FromFloats({4}, std::vector<float>(4, 1))}});
  const double loss = 0.5 * 28.0 / 8 + 2;
  EXPECT_DOUBLE_EQ(t.Output("loss_sum"), 4 * loss);
}

// As language models write it: samples and positions are one dimension.
TEST(EvalGraphTest, ALossOverFlattenedPositionsIsTakenApart) {
  const Result<NamedGraph> eval =
      BuildEvalGraph(Parse("  x = input f64[batch=2,3]\n"
                           "  rows = reshape(x, dims=[6])\n"
                           "  squares = square(rows)\n"
                           "  loss = reduce_mean(squares)\n"
                           "  output loss\n"));
  ASSERT_TRUE(eval.ok()) << eval.status().message();
  const Tensors t(eval->graph,
                  {{"x", Doubles({2, 3}, {1, 2, 3, 9, 9, 9})},
                   {"ridge.weight", Tensor::FromFloats({2}, std::vector<float>{1, 0})}});
  EXPECT_DOUBLE_EQ(t.Output("loss_sum"), 14.0 / 3);
}

// Two weighted means, as a model with a start and an end to find has them.
TEST(EvalGraphTest, ASumOfWeightedMeansIsTakenApart) {
  const Result<NamedGraph> eval =
      BuildEvalGraph(Parse("  x = input f64[batch=2]\n"
                           "  w = input f64[batch=2]\n"
                           "  p = mul(x, w)\n"
                           "  a = reduce_sum(p)\n"
                           "  b = reduce_sum(w)\n"
                           "  mean = div(a, b)\n"
                           "  half = constant f64[] [0.5]\n"
                           "  loss = mul(mean, half)\n"
                           "  output loss\n"));
  ASSERT_TRUE(eval.ok()) << eval.status().message();
  const Tensors t(eval->graph,
                  {{"x", Doubles({2}, {1, 5})},
                   {"w", Doubles({2}, {3, 1})},
                   {"ridge.weight", Tensor::FromFloats({2}, std::vector<float>{1, 1})}});
  EXPECT_DOUBLE_EQ(t.Output("loss_sum") / t.Output("weight_sum"), 0.5 * (3 + 5) / 4);
}

// Lengths may be computed; the blank is any class, and of equals the first is best.
TEST(EvalGraphTest, TheBestClassesOfCtcAreBlanksBehindTheEndOfASample) {
  const Graph forward = Parse(
      "  x = input f64[batch=2,3,2]\n"
      "  text = input i64[batch=2,1]\n"
      "  half = input i64[batch=2]\n"
      "  length = input i64[batch=2]\n"
      "  frames = add(half, half)\n"
      "  one = constant i64[] [1]\n"
      "  count = sub(frames, one)\n"
      "  losses = ctc_loss(x, text, count, length, blank=1)\n"
      "  loss = reduce_mean(losses)\n"
      "  output loss\n");
  const Result<ForwardInfo> facts = InspectForward(forward);
  ASSERT_TRUE(facts.ok() && facts->ctc);
  EXPECT_EQ(facts->ctc->blank, 1);
  EXPECT_EQ(forward.value(facts->ctc->lengths).name, "count");
  EXPECT_EQ(forward.value(facts->ctc->targets).name, "text");
  const Result<NamedGraph> eval = BuildEvalGraph(forward);
  ASSERT_TRUE(eval.ok()) << eval.status().message();
  const auto integers = [](Dims dims, const std::vector<int64_t>& values) {
    Tensor tensor({DType::kI64, std::move(dims)});
    std::copy(values.begin(), values.end(), tensor.as_mutable<int64_t>());
    return tensor;
  };
  const Tensors t(eval->graph,
                  {{"x", Doubles({2, 3, 2}, {5, 0, 0, 5, 1, 1, 5, 0, 5, 0, 5, 0})},
                   {"text", integers({2, 1}, {0, 0})},
                   {"half", integers({2}, {2, 1})},
                   {"length", integers({2}, {1, 1})},
                   {"ridge.weight", Tensor::FromFloats({2}, std::vector<float>{1, 1})}});
  std::vector<double> spelled;
  for (int64_t i = 0; i < 6; ++i) spelled.push_back(t.Output("spelled", i));
  EXPECT_EQ(spelled, (std::vector<double>{0, 1, 0, 0, 1, 1}));
}

TEST(EvalGraphTest, ALossThatIsNoMeanOverSamplesIsRefusedByName) {
  const Graph graph = Parse(
      "  x = input f64[batch=4,2]\n"
      "  w = parameter f64[2] init=constant(1)\n"
      "  p = mul(x, w)\n"
      "  loss = reduce_max(p)\n"
      "  output loss\n");
  const Result<NamedGraph> eval = BuildEvalGraph(graph);
  EXPECT_EQ(eval.status().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(eval.status().message(), HasSubstr("reduce_max 'loss'"));
  EXPECT_THAT(eval.status().message(), HasSubstr("can't be told apart by sample"));
}

TEST(InferenceFormTest, BatchNormUsesItsRunningStatistics) {
  const Result<Graph> forward = BuildModel("resnet18:image=32", {.batch = 2});
  const Result<std::vector<RunningStatistics>> found = FindRunningStatistics(*forward);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->size(), 20u);
  for (const RunningStatistics& entry : *found) {
    const std::string name = forward->value(forward->node(entry.node).outputs[0]).name;
    EXPECT_EQ(forward->value(entry.mean).name, name + ".running_mean");
    EXPECT_EQ(forward->value(entry.var).name, name + ".running_var");
  }
  const Result<NamedGraph> infer = BuildInferenceGraph(*forward, {"label"});
  ASSERT_TRUE(infer.ok()) << infer.status().message();
  EXPECT_TRUE(CheckGraph(infer->graph).ok());
  EXPECT_EQ(infer->graph.outputs().size(), 1u);
  EXPECT_EQ(infer->graph.FindValue("label"), kNoValue);
  for (const Node& node : infer->graph.nodes()) EXPECT_NE(node.op->name, "batch_norm");
}

TEST(InferenceFormTest, DropoutIsGoneAndSoIsItsRandomInput) {
  const Graph graph = Parse(
      "  x = input f32[batch=4,2]\n"
      "  rng = input i64[3]\n"
      "  w = parameter f32[2] init=constant(1)\n"
      "  p = mul(x, w)\n"
      "  d = dropout(p, rng, rate=0.5, stream=7)\n"
      "  loss = reduce_mean(d)\n"
      "  output loss\n");
  EXPECT_EQ(Build(graph, {}).size(), 1u);
  const Result<NamedGraph> infer = BuildInferenceGraph(graph);
  ASSERT_TRUE(infer.ok()) << infer.status().message();
  EXPECT_EQ(infer->graph.FindValue("rng"), kNoValue);
  EXPECT_EQ(infer->graph.nodes().size(), 2u);
}

TEST(InferenceFormTest, ABatchNormWithoutRunningStatisticsIsNamed) {
  const Graph graph = Parse(
      "  x = input f32[batch=4,2]\n"
      "  g = parameter f32[2] init=constant(1)\n"
      "  b = parameter f32[2] init=zeros\n"
      "  y, mean, var = batch_norm(x, g, b)\n"
      "  loss = reduce_mean(y)\n"
      "  output loss\n");
  const Result<NamedGraph> infer = BuildInferenceGraph(graph);
  EXPECT_EQ(infer.status().code(), ErrorCode::kInvalidModel);
  EXPECT_THAT(infer.status().message(), HasSubstr("batch_norm 'y'"));
  EXPECT_THAT(infer.status().message(), HasSubstr("no running mean and variance"));
}

}  // namespace
}  // namespace ridge
