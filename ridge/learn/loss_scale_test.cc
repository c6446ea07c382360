#include "ridge/learn/loss_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "ridge/graph/interpret.h"
#include "ridge/graph/text.h"
#include "ridge/graph/verify.h"
#include "ridge/learn/training_graph.h"

namespace ridge {
namespace {

// The gradient of w is the mean of x, and of b 1: both are finite whatever the loss is.
constexpr char kNet[] =
    "graph net\n"
    "  x = input f32[batch=4,3]\n"
    "  w = parameter f32[3] init=constant(0.5)\n"
    "  b = parameter f32[] init=constant(0.25)\n"
    "  mean = state f32[3] init=zeros role=statistic\n"
    "  p = mul(x, w)\n"
    "  each = reduce_sum(p, axes=[1])\n"
    "  y = add(each, b)\n"
    "  loss = reduce_mean(y)\n"
    "  m.x = reduce_mean(x, axes=[0])\n"
    "  m.gap = sub(m.x, mean)\n"
    "  tenth = constant f32[] 0.1\n"
    "  m.step = mul(m.gap, tenth)\n"
    "  m.next = add(mean, m.step)\n"
    "  output loss\n"
    "  update mean = m.next\n";

using Tensors = std::map<std::string, Tensor>;

std::string BitsOf(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.type().bytes())};
}

// A program of graphs over variables that they share by name.
class Program {
 public:
  explicit Program(std::vector<NamedGraph> graphs) : graphs_(std::move(graphs)) {
    for (const NamedGraph& named : graphs_) {
      const Status status = CheckGraph(named.graph);
      EXPECT_TRUE(status.ok()) << named.name << ": " << status.message();
    }
  }

  // The values of all nodes.
  std::vector<Tensor> Run(size_t graph, const Tensors& inputs) {
    const Graph& of = graphs_[graph].graph;
    Tensors given = variables_;
    given.insert(inputs.begin(), inputs.end());
    Result<std::vector<Tensor>> values = EvaluateGraph(of, given);
    EXPECT_TRUE(values.ok()) << values.status().message();
    if (!values.ok()) return {};
    for (const GraphUpdate& update : of.updates())
      variables_[of.value(update.variable).name] = (*values)[static_cast<size_t>(update.value)];
    return std::move(*values);
  }

  size_t graphs() const { return graphs_.size(); }
  const Graph& graph(size_t i) const { return graphs_[i].graph; }
  const Tensors& variables() const { return variables_; }
  double Number(const std::string& name) const { return variables_.at(name).at(0); }

 private:
  const std::vector<NamedGraph> graphs_;
  Tensors variables_;
};

Program ProgramOf(const TrainingGraphOptions& options) {
  const Result<Graph> forward = ParseGraph(kNet, "net.ridge");
  EXPECT_TRUE(forward.ok()) << forward.status().message();
  Result<std::vector<NamedGraph>> graphs = BuildTrainingGraphs(*forward, options);
  EXPECT_TRUE(graphs.ok()) << graphs.status().message();
  return Program(std::move(*graphs));
}

Tensor Batch(std::mt19937& random, bool overflows) {
  std::uniform_real_distribution<float> value(-1, 1);
  Tensor x({DType::kF32, {4, 3}});
  auto* at = static_cast<float*>(x.mutable_data());
  for (int i = 0; i < 12; ++i) at[i] = value(random);
  // Finite, as is the loss: the scaled gradients are not from a scale of 8 on.  Their sum is NaN.
  if (overflows) at[0] = 0x1p127F;
  if (overflows) at[1] = -0x1p127F;
  return x;
}

// One update of `micros` batches, the first of which overflows.
void Update(Program& program, int64_t step, bool overflows, std::mt19937& random) {
  const Tensors scalars = {{kLrInput, Tensor::Scalar(DType::kF32, 0.01)},
                           {kStepInput, Tensor::Scalar(DType::kI64, static_cast<double>(step))}};
  const size_t batches = program.graphs() == 1 ? 1 : 2;
  for (size_t i = 0; i < batches; ++i) {
    Tensors inputs = scalars;
    inputs["x"] = Batch(random, overflows && i == 0);
    program.Run(0, inputs);
  }
  if (program.graphs() == 2) program.Run(1, scalars);
}

struct Row {
  const char* name;
  TrainingGraphOptions options;
};

std::vector<Row> Rows() {
  TrainingGraphOptions adam, sgd, accumulated;
  sgd.optimizer.name = "sgd";
  sgd.optimizer.momentum = 0.9;
  sgd.clip_norm = 0.5;
  adam.average_decay = 0.9;
  accumulated.accumulate = 2;
  TrainingGraphOptions coded;
  coded.optimizer.state = "8bit";
  coded.optimizer.least_coded = 1;
  return {{"adam, averages", adam},
          {"sgd, clipped", sgd},
          {"accumulated", accumulated},
          {"moments of 8 bits", coded}};
}

// A scale is a power of two, so it changes no bit: a run with overflows has the bits of a run
// without a scale on the other batches alone.
TEST(LossScaleTest, ASkippedUpdateIsOneThatNeverWas) {
  for (const Row& row : Rows()) {
    SCOPED_TRACE(row.name);
    TrainingGraphOptions scaled = row.options;
    scaled.loss_scale = LossScaleOptions{.growth_interval = 7};
    Program with = ProgramOf(scaled), without = ProgramOf(row.options);
    std::mt19937 choice(3);
    int64_t done = 0;
    for (int64_t step = 1; step <= 100; ++step) {
      const bool overflows = choice() % 9 == 0;
      std::mt19937 random(static_cast<uint32_t>(step)), same = random;
      ASSERT_GE(step == 1 ? 8 : with.Number(kLossScaleState), 8);  // else it does not overflow
      Update(with, step, overflows, random);
      if (overflows) continue;
      Update(without, ++done, /*overflows=*/false, same);
      for (const auto& [name, tensor] : without.variables())
        ASSERT_EQ(BitsOf(with.variables().at(name)), BitsOf(tensor)) << name << ", step " << step;
    }
    EXPECT_GT(done, 50);
    EXPECT_LT(done, 100);
    EXPECT_EQ(with.Number(kUpdatesState), static_cast<double>(done));
  }
}

TEST(LossScaleTest, ASkippedUpdateLeavesTheBitsOfEveryVariableButTheScale) {
  for (const Row& row : Rows()) {
    SCOPED_TRACE(row.name);
    TrainingGraphOptions options = row.options;
    options.loss_scale = LossScaleOptions();
    Program program = ProgramOf(options);
    std::mt19937 random(1);
    Update(program, 1, /*overflows=*/false, random);
    const Tensors before = program.variables();
    EXPECT_EQ(program.Number(kLossScaleState), 32768);
    EXPECT_EQ(program.Number(kGoodUpdatesState), 1);
    Update(program, 2, /*overflows=*/true, random);
    EXPECT_EQ(program.Number(kLossScaleState), 16384);
    EXPECT_EQ(program.Number(kGoodUpdatesState), 0);
    for (const auto& [name, tensor] : before) {
      if (name == kLossScaleState || name == kGoodUpdatesState) continue;
      EXPECT_EQ(BitsOf(program.variables().at(name)), BitsOf(tensor)) << name;
    }
    EXPECT_NE(program.variables().at("w").at(0), 0.5);
  }
}

// The rule in f64, as it is written in the header.
struct Model {
  double scale;
  int64_t interval, good = 0, updates = 0;

  void Take(double grad) {
    if (std::abs(grad * scale) > std::numeric_limits<float>::max()) {
      scale = std::max(1.0, scale / 2);
      good = 0;
      return;
    }
    ++updates;
    if (++good < interval) return;
    scale = std::min(16777216.0, scale * 2);
    good = 0;
  }
};

// loss = grad * w
Program ScaleAlone(const LossScaleOptions& options) {
  GraphBuilder b("scale");
  const Value grad = b.Input("grad", {DType::kF32, {}});
  LossScale scale(b, options);
  const Value scaled = scale.Scaled(grad);
  const Value finite = LossScale::AllFinite({scaled});
  b.Output("grad", scaled * scale.Inverse());
  b.Output("step", scale.Step());
  scale.Append(finite);
  Result<Graph> graph = b.Build();
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return Program({{"scale", std::move(*graph)}});
}

TEST(LossScaleTest, ScaleAndCountersFollowTheModelBetweenLeastAndMost) {
  struct {
    double start;
    int64_t interval;
    double grad;  // that overflows from some scale on
  } rows[] = {{32768, 5, 0x1p115}, {4, 3, 0x1p127}, {1 << 23, 2, 0x1p100}, {32768, 1, 0x1p128}};
  for (const auto& row : rows) {
    Program program = ScaleAlone({.scale = row.start, .growth_interval = row.interval});
    Model model{.scale = row.start, .interval = row.interval};
    std::mt19937 choice(5);
    for (int step = 0; step < 100; ++step) {
      const double wanted = choice() % 4 == 0 ? row.grad : 1.5;
      const Tensor grad = Tensor::Scalar(DType::kF32, wanted);  // 2^128 is infinity
      program.Run(0, {{"grad", grad}});
      model.Take(grad.at(0));
      ASSERT_EQ(program.Number(kLossScaleState), model.scale) << row.start << ", step " << step;
      ASSERT_EQ(program.Number(kGoodUpdatesState), static_cast<double>(model.good));
      ASSERT_EQ(program.Number(kUpdatesState), static_cast<double>(model.updates));
    }
  }
}

TEST(LossScaleTest, AConstantScaleHasNoOtherStateThanTheUpdates) {
  Program program = ScaleAlone({.dynamic = false, .scale = 1000});
  for (const double grad : {1.5, 0x1p120, std::nan(""), 2.0})
    program.Run(0, {{"grad", Tensor::Scalar(DType::kF32, grad)}});
  EXPECT_EQ(program.variables().size(), 1U);
  EXPECT_EQ(program.Number(kUpdatesState), 2);
}

TEST(LossScaleTest, GradientsOfScaledLossesAreThoseOfTheLoss) {
  Program program = ScaleAlone({});
  const std::vector<Tensor> values =
      program.Run(0, {{"grad", Tensor::Scalar(DType::kF32, 0x1.234568p-20)}});
  EXPECT_EQ(values[static_cast<size_t>(program.graph(0).FindOutput("grad"))].at(0), 0x1.234568p-20);
  EXPECT_EQ(values[static_cast<size_t>(program.graph(0).FindOutput("step"))].at(0), 1);
}

TEST(LossScaleTest, WithoutAScaleTheGraphIsAsBefore) {
  const Program program = ProgramOf({});
  EXPECT_EQ(program.graph(0).FindValue(kUpdatesState), kNoValue);
  EXPECT_NE(program.graph(0).FindValue(kStepInput), kNoValue);
  TrainingGraphOptions scaled;
  scaled.loss_scale = LossScaleOptions();
  EXPECT_EQ(ProgramOf(scaled).graph(0).FindValue(kStepInput), kNoValue);
}

TEST(LossScaleTest, AStepOfTheGraphsOwnCannotBeScaled) {
  const Result<Graph> forward = ParseGraph(std::string(kNet) +
                                               "  half = mul(w, tenth)\n"
                                               "  update w = half\n",
                                           "net.ridge");
  ASSERT_TRUE(forward.ok()) << forward.status().message();
  TrainingGraphOptions options;
  options.loss_scale = LossScaleOptions();
  EXPECT_EQ(BuildTrainingGraphs(*forward, options).status().message(),
            "net: brings its own training step, to which the loss scale of --precision f16 cannot "
            "be added. hint: --precision bf16, or --loss: then the step is ridge's");
}

TEST(LossScaleTest, AScaleIsDynamicOrANumber) {
  const auto error = [](const char* text) { return ParseLossScale(text).status().message(); };
  EXPECT_TRUE(ParseLossScale("")->dynamic);
  EXPECT_TRUE(ParseLossScale("dynamic")->dynamic);
  EXPECT_FALSE(ParseLossScale("1024")->dynamic);
  EXPECT_EQ(ParseLossScale("1e3")->scale, 1000);
  for (const char* text : {"0", "abc", "-1", "0.5", "16777217", "nan", "1024x", " 1"}) {
    EXPECT_EQ(error(text), std::string("--loss-scale is '") + text +
                               "'; it must be dynamic, or a number from 1 to 16777216");
  }
}

TEST(LossScaleTest, AScaleThatLosesGradientsIsDoubted) {
  EXPECT_EQ(LossScaleDoubt(64),
            "a loss scale of 64 is below 128: gradients below 9.3e-10 become 0 in f16");
  EXPECT_EQ(LossScaleDoubt(131072),
            "a loss scale of 131072 is above 65536: gradients above 5.0e-01 are infinite in f16, "
            "whose largest number is 65504, and their updates do not happen");
  for (const double scale : {128.0, 1024.0, 65536.0}) EXPECT_EQ(LossScaleDoubt(scale), "");
}

}  // namespace
}  // namespace ridge
