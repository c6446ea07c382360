// Expected numbers are those of torch.nn.functional.cross_entropy in f64, and of the focal loss
// composed of it (PyTorch 2): label_smoothing 0.1, gamma 2; of the Dice loss composed of
// softmax and one_hot as loss_shape.h says, for logits [2, 3, 3].
#include "ridge/learn/loss_shape.h"

#include <gtest/gtest.h>

#include "ridge/graph/autodiff.h"
#include "ridge/graph/interpret.h"
#include "ridge/graph/text.h"
#include "ridge/learn/training_graph.h"

namespace ridge {
namespace {

// The mean over the labels that are not -100, of logits that are a parameter.
constexpr char kNet[] =
    "graph net\n"
    "  label = input i64[batch=4]\n"
    "  logits = parameter f64[4,3]\n"
    "  losses = softmax_cross_entropy(logits, label)\n"
    "  sum = reduce_sum(losses)\n"
    "  none = constant i64[] [-100]\n"
    "  counts = not_equal(label, none)\n"
    "  ones = cast(counts, to=\"f64\")\n"
    "  count = reduce_sum(ones)\n"
    "  one = constant f64[] [1]\n"
    "  guarded = maximum(count, one)\n"
    "  loss = div(sum, guarded)\n"
    "  output loss\n";

Graph Parse(const std::string& text) {
  Result<Graph> graph = ParseGraph(text, "net.ridge");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? *graph : Graph();
}

Tensor Numbers(DType dtype, Dims dims, const std::vector<double>& numbers) {
  Tensor tensor({dtype, std::move(dims)});
  for (size_t i = 0; i < numbers.size(); ++i)
    StoreFromDouble(dtype, tensor.mutable_data(), static_cast<int64_t>(i), numbers[i]);
  return tensor;
}

const std::vector<double> kLogits = {1, -2, .5, 0, 3, -1, 2, 2, -.5, -1, .25, 4};

// The loss of a graph, then its gradient by the logits; empty on an error.
std::vector<double> LossAndGradient(const LossShape& shape, const std::string& net,
                                    const Tensor& logits, const Tensor& labels) {
  const Result<Graph> shaped = WithLossShape(Parse(net), shape);
  EXPECT_TRUE(shaped.ok()) << shaped.status().message();
  if (!shaped.ok()) return {};
  GraphBuilder b(*shaped);
  const Value loss = b.At(shaped->FindOutput("loss"));
  const auto grads = AppendGradients(b, loss, {b.At(shaped->FindValue("logits"))});
  EXPECT_TRUE(grads.ok()) << grads.status().message();
  const Result<Graph> graph = b.Build();
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  if (!grads.ok() || !graph.ok()) return {};
  const auto values = EvaluateGraph(*graph, {{"logits", logits}, {"label", labels}});
  EXPECT_TRUE(values.ok()) << values.status().message();
  if (!values.ok()) return {};
  std::vector<double> numbers = {values->at(static_cast<size_t>(loss.id)).at(0)};
  for (int64_t i = 0; i < logits.type().elements(); ++i)
    numbers.push_back(values->at(static_cast<size_t>((*grads)[0].id)).at(i));
  return numbers;
}

std::vector<double> LossAndGradient(const LossShape& shape,
                                    const std::vector<double>& labels = {2, 1, -100, 0}) {
  return LossAndGradient(shape, kNet, Numbers(DType::kF64, {4, 3}, kLogits),
                         Numbers(DType::kI64, {4}, labels));
}

// Two samples of three places.
std::vector<double> OfPlaces(const LossShape& shape) {
  std::string net = kNet;
  net.replace(net.find("batch=4]"), 8, "batch=2,3]");
  net.replace(net.find("f64[4,3]"), 8, "f64[2,3,3]");
  std::vector<double> logits = kLogits;
  logits.insert(logits.end(), {.5, .5, 1, 2, -1, 0});
  return LossAndGradient(shape, net, Numbers(DType::kF64, {2, 3, 3}, logits),
                         Numbers(DType::kI64, {2, 3}, {2, 1, -100, 0, 0, 1}));
}

void ExpectNear(const std::vector<double>& have, const std::vector<double>& want) {
  ASSERT_EQ(have.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(have[i], want[i], 2e-11) << i;
}

TEST(LossShape, SmoothsLabelsAsPyTorch) {
  LossShape shape;
  shape.label_smoothing = 0.1;
  ExpectNear(LossAndGradient(shape),
             {2.0639848298968313, 0.190138520938, -0.001091481921, -0.189047039017, 0.004426429748,
              0.000968739514, -0.005395169263, 0.0, 0.0, 0.0, -0.30893108692, -0.00350207903,
              0.31243316595});
}

TEST(LossShape, WeighsClassesAsPyTorch) {
  LossShape shape;
  shape.class_weights = {.5, 2, 1.25};
  ExpectNear(LossAndGradient(shape),
             {1.0406446517079386, 0.20124963205, 0.01001962919, -0.211269261239, 0.024860065375,
              -0.034005572333, 0.009145506958, 0.0, 0.0, 0.0, -0.132461323657, 0.003043612832,
              0.129417710825});
}

TEST(LossShape, SmoothsAndWeighsAsPyTorch) {
  LossShape shape;
  shape.label_smoothing = 0.1;
  shape.class_weights = {.5, 2, 1.25};
  ExpectNear(LossAndGradient(shape),
             {1.1621453361934946, 0.196805187605, -0.007758148588, -0.189047039017, 0.019483368479,
              -0.017174807815, -0.002308560664, 0.0, 0.0, 0.0, -0.123441633317, -0.01427762302,
              0.137719256337});
}

TEST(LossShape, FocusesAsTheFocalLoss) {
  LossShape shape;
  shape.focal_gamma = 2;
  ExpectNear(LossAndGradient(shape),
             {1.789352777261773, 0.174692147226, 0.008697409877, -0.183389557103, 0.000185382767,
              -0.000253581275, 6.8198509e-05, 0.0, 0.0, 0.0, -0.348480229794, 0.008007159146,
              0.340473070648});
  shape.class_weights = {.5, 2, 1.25};
  ExpectNear(LossAndGradient(shape),
             {0.7965600363242286, 0.174692147226, 0.008697409877, -0.183389557103, 0.000296612427,
              -0.000405730041, 0.000109117614, 0.0, 0.0, 0.0, -0.139392091918, 0.003202863659,
              0.136189228259});
}

TEST(LossShape, DiceIsBySampleAndClass) {
  LossShape shape;
  shape.dice = 1;
  ExpectNear(OfPlaces(shape),
             {0.410434794891, 0.0333351731123, 0.00145580794165, -0.0347909810539, 0.00520828719215,
              -0.0069466348458, 0.00173834765364, 0, 0, 0, -0.000595074087616, 0.000172590889556,
              0.000422483198059, -0.0187245221555, 0.00828485867822, 0.0104396634772,
              0.00340161619607, -0.00507294742101, 0.00167133122494});
}

TEST(LossShape, DiceIsAddedToTheCrossEntropyByItsShare) {
  LossShape shape;
  shape.dice = 0.5;
  ExpectNear(OfPlaces(shape),
             {1.26166845865, 0.077042476171, 0.00373379272778, -0.0807762688988, 0.00726540585387,
              -0.00984936223525, 0.00258395638137, 0, 0, 0, -0.0996435297866, 0.00236900506911,
              0.0972745247175, -0.0819553991716, 0.0315492912452, 0.0504061079264, 0.0860802815462,
              -0.0983354670971, 0.0122551855509});
  shape.dice = 0.25;
  shape.class_weights = {.5, 2, 1.25};
  ExpectNear(OfPlaces(shape),
             {1.39813981183, 0.0965521332654, 0.00527731047545, -0.101829443741, 0.0124606366149,
              -0.0171576251014, 0.00469698848653, 0, 0, 0, -0.0596932450205, 0.00152180917075,
              0.0581714358497, -0.0466536929458, 0.0187626913769, 0.0278910015689, 0.203640898605,
              -0.231765457119, 0.0281245585147});
}

TEST(LossShape, DiceNeedsSeveralLabelsASample) {
  LossShape shape;
  shape.dice = 0.5;
  EXPECT_EQ(WithLossShape(Parse(kNet), shape).status().message(),
            "net: --dice needs several labels a sample, as masks have; 'label' is i64[4]");
}

TEST(LossShape, LabelsThatAreAllIgnoredGiveZero) {
  LossShape shape;
  shape.class_weights = {.5, 2, 1.25};
  shape.label_smoothing = 0.1;
  shape.focal_gamma = 0.5;
  ExpectNear(LossAndGradient(shape, {-100, -100, -100, -100}), std::vector<double>(13, 0));
}

std::string Operators(const Graph& graph) {
  std::string names;
  for (const Node& node : graph.nodes()) names += node.op->name + " ";
  return names;
}

TEST(LossShape, EvaluationReadsThePlainLossOfTheSameCrossEntropy) {
  LossShape shape;
  shape.label_smoothing = 0.1;
  const Graph plain = Parse(kNet);
  const Result<Graph> shaped = WithLossShape(plain, shape);
  ASSERT_TRUE(shaped.ok()) << shaped.status().message();
  const ForwardInfo facts = *InspectForward(*shaped), before = *InspectForward(plain);
  EXPECT_NE(facts.loss, facts.eval_loss);
  EXPECT_EQ(facts.eval_loss, before.loss);
  EXPECT_EQ(facts.logits, before.logits);
  EXPECT_TRUE(facts.loss_is_cross_entropy);
  EXPECT_EQ(facts.ignored_label, before.ignored_label);
  const auto eval = BuildEvalGraph(*shaped), want = BuildEvalGraph(plain);
  ASSERT_TRUE(eval.ok() && want.ok());
  EXPECT_EQ(Operators(eval->graph), Operators(want->graph));
}

TEST(LossShape, WithoutOptionsTheGraphStays) {
  const Graph plain = Parse(kNet);
  EXPECT_EQ(PrintGraph(*WithLossShape(plain, {})), PrintGraph(plain));
}

TEST(LossShape, NeedsTheMeanOfOneCrossEntropy) {
  LossShape shape;
  shape.label_smoothing = 0.1;
  EXPECT_EQ(WithLossShape(Parse("graph net\n"
                                "  x = input f32[batch=4,2]\n"
                                "  w = parameter f32[2]\n"
                                "  y = mul(x, w)\n"
                                "  loss = reduce_mean(y)\n"
                                "  output loss\n"),
                          shape)
                .status()
                .message(),
            "net: --label-smoothing, --class-weights, --focal and --dice shape the mean of one "
            "cross entropy, which this loss is not. hint: --loss cross_entropy:OUTPUT");
}

TEST(LossShape, TakesAWeightForEachClass) {
  LossShape shape;
  shape.class_weights = {1, 2};
  EXPECT_EQ(WithLossShape(Parse(kNet), shape).status().message(),
            "--class-weights has 2 numbers; net has 3 classes");
}

}  // namespace
}  // namespace ridge
