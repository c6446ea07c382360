// A step in slices is the step: the same parameters, losses and counts, but for rounding.
#include "ridge/train/job/slicing.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "ridge/graph/text.h"
#include "ridge/learn/loss_shape.h"
#include "ridge/train/job/job.h"
#include "ridge/train/job/step_runner.h"
#include "ridge/train/options/test_machine.h"

namespace ridge {
namespace {

using testing::HasSubstr;

constexpr int64_t kBatch = 12;

Graph Parse(const std::string& body) {
  Result<Graph> graph = ParseGraph("graph net\n" + body, "net.ridge");
  EXPECT_TRUE(graph.ok()) << graph.status().message() << "\n" << body;
  return graph.ok() ? std::move(*graph) : Graph();
}

// What training leaves after two updates of adam, by name, and what it said.
using Left = std::map<std::string, std::vector<double>>;

struct Way {
  std::string slices = "1";
  int64_t accumulate = 1;
  bool write_in_place = true;
  std::string recompute = "off";
  std::string sums = "running";
};

void FillData(Executor& executor, const ForwardInfo& facts, const Graph& forward) {
  std::mt19937 draw(7);
  for (ValueId id : facts.data_inputs) {
    const ValueInfo& input = forward.value(id);
    void* data = executor.transfers().Input(input.name);
    for (int64_t i = 0; i < input.type.elements(); ++i) {
      const auto drawn = static_cast<double>(draw() % 3000);
      const bool real = IsFloat(input.type.dtype);
      StoreFromDouble(input.type.dtype, data, i, real ? drawn / 1500 - 1 : std::fmod(drawn, 3));
    }
  }
}

void Read(Executor& executor, int step, const std::string& prefix, Left& left) {
  const StepPlan& plan = executor.program().steps[static_cast<size_t>(step)];
  for (const auto& [name, value] : plan.outputs) {
    const PlannedValue& planned = plan.values[static_cast<size_t>(value)];
    // Of an output by sample the rows of all slices.
    const int64_t slices = planned.slice_bytes > 0 ? plan.slices : 1;
    const void* data = *executor.transfers().Output(step, name);
    std::vector<double>& numbers = left[prefix + name];
    numbers.clear();
    for (int64_t i = 0; i < slices * planned.type.elements(); ++i)
      numbers.push_back(LoadAsDouble(planned.type.dtype, data, i));
  }
}

Status RunUpdates(Executor& executor, const PlannedJob& job, Left& left) {
  StepRunner runner(executor, job);
  int64_t done = 0;
  runner.SetHooks({.execute = [&](int step, int slot) {
    RIDGE_RETURN_IF_ERROR(executor.Run(step, slot));
    if (step == runner.batch_step()) Read(executor, step, std::to_string(done) + " ", left);
    return Status();
  }});
  for (; done < 2; ++done)
    RIDGE_RETURN_IF_ERROR(runner.Run({/*lr=*/0.01, done, /*seed=*/5}).status());
  auto* weight = static_cast<float*>(executor.transfers().Input("ridge.weight"));
  for (int64_t i = 0; i < kBatch; ++i) weight[i] = i < kBatch - 1 ? 1.0F : 0.0F;
  RIDGE_RETURN_IF_ERROR(executor.Run(executor.StepIndex("eval"), 0));
  Read(executor, executor.StepIndex("eval"), "eval ", left);
  return Status();
}

Result<Left> TrainIn(const Graph& forward, const Way& way) {
  const TestMachine machine;
  TrainOptions options;
  options.model = "net";
  options.batch = kBatch;
  options.slices = way.slices;
  options.accumulate = way.accumulate;
  options.recompute = way.recompute;
  options.sums = way.sums;
  if (!way.write_in_place) options.passes = "-inplace";
  RIDGE_ASSIGN_OR_RETURN(PlannedJob job, PlanJob(options, forward, nullptr, machine.get()));
  EXPECT_EQ(job.options.slices, way.slices);
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor,
                         Executor::Create(std::move(job.program), *machine.get().backend));
  RIDGE_RETURN_IF_ERROR(executor->transfers().Initialize(3));
  FillData(*executor, job.facts, forward);
  Left left;
  RIDGE_RETURN_IF_ERROR(RunUpdates(*executor, job, left));
  for (const PersistentValue& value : executor->program().persistent) {
    if (value.kind != ValueKind::kParameter && value.role != ValueRole::kStatistic) continue;
    RIDGE_ASSIGN_OR_RETURN(const void* data, executor->transfers().Read(value.name));
    for (int64_t i = 0; i < value.type.elements(); ++i)
      left[value.name].push_back(LoadAsDouble(value.type.dtype, data, i));
  }
  return left;
}

void ExpectSame(const Left& want, const Left& have, const std::string& what) {
  for (const auto& [name, values] : want) {
    ASSERT_TRUE(have.contains(name)) << what << " has no " << name;
    const bool counted = name.find("correct") != std::string::npos;  // f32, by shares
    ASSERT_EQ(values.size(), have.at(name).size()) << what << " has other rows of " << name;
    for (size_t i = 0; i < values.size(); ++i) {
      const double bound = (counted ? 1e-6 : 1e-12) * std::max(1.0, std::abs(values[i]));
      EXPECT_NEAR(values[i], have.at(name)[i], bound) << what << ", " << name << " " << i;
    }
  }
}

void ExpectSliceable(const Graph& forward, const std::string& body) {
  const Result<Left> whole = TrainIn(forward, {});
  ASSERT_TRUE(whole.ok()) << whole.status().message() << "\n" << body;
  for (const Way& way : {Way{"2"}, Way{"3"}, Way{"12"}, Way{"4", 1, false}}) {
    const Result<Left> sliced = TrainIn(forward, way);
    ASSERT_TRUE(sliced.ok()) << sliced.status().message() << "\n" << body;
    ExpectSame(*whole, *sliced, way.slices + " slices of\n" + body);
  }
}

void ExpectSliceable(const std::string& body) { ExpectSliceable(Parse(body), body); }

std::string Refusal(const std::string& body) {
  return TrainIn(Parse(body), {"2"}).status().message();
}

const char kImage[] =
    "  x = input f64[batch=12,2,6,6]\n"
    "  label = input i64[batch=12]\n";
const char kTokens[] =
    "  ids = input i64[batch=12,5]\n"
    "  label = input i64[batch=12,5]\n"
    "  table = parameter f64[3,8] init=normal(1)\n"
    "  x = gather(table, ids)\n";
const char kClassify[] =
    "  fc = parameter f64[3,8] init=normal(1)\n"
    "  logits = matmul(h, fc, transpose_b=1)\n"
    "  each = softmax_cross_entropy(logits, label)\n"
    "  loss = reduce_mean(each)\n"
    "  output loss\n";

TEST(SlicingTest, ConvolutionsAndPools) {
  ExpectSliceable(std::string(kImage) +
                  "  k = parameter f64[4,2,3,3] init=normal(0.5)\n"
                  "  bias = parameter f64[4] init=normal(0.5)\n"
                  "  c = conv(x, k, bias, padding=[1,1,1,1])\n"
                  "  r = relu(c)\n"
                  "  p, index = max_pool(r, kernel=[2,2], stride=[2,2])\n"
                  "  up = parameter f64[4,2,2,2] init=normal(0.5)\n"
                  "  u = conv_grad_input(p, up, input_dims=[12,2,6,6], stride=[2,2])\n"
                  "  both = concat(u, x, axis=1)\n"
                  "  a = avg_pool(both, kernel=[3,3], stride=[3,3])\n"
                  "  s = slice(a, axes=[2], starts=[0], ends=[1])\n"
                  "  h = reshape(s, dims=[12,8])\n" +
                  kClassify);
}

TEST(SlicingTest, Attention) {
  ExpectSliceable(std::string(kTokens) +
                  "  scale = parameter f64[8] init=constant(1)\n"
                  "  n, mean, rstd = layer_norm(x, scale)\n"
                  "  w = parameter f64[24,8] init=normal(0.5)\n"
                  "  qkv = matmul(n, w, transpose_b=1)\n"
                  "  split = reshape(qkv, dims=[12,5,3,2,4])\n"
                  "  turned = transpose(split, permutation=[2,0,3,1,4])\n"
                  "  q4 = slice(turned, starts=[0], ends=[1])\n"
                  "  k4 = slice(turned, starts=[1], ends=[2])\n"
                  "  v4 = slice(turned, starts=[2], ends=[3])\n"
                  "  q = reshape(q4, dims=[12,2,5,4])\n"
                  "  k = reshape(k4, dims=[12,2,5,4])\n"
                  "  v = reshape(v4, dims=[12,2,5,4])\n"
                  "  y, lse = attention(q, k, v, scale=0.5, causal=1)\n"
                  "  back = transpose(y, permutation=[0,2,1,3])\n"
                  "  flat = reshape(back, dims=[60,8])\n"
                  "  g = gelu(flat)\n"
                  "  three = reshape(g, dims=[12,5,8])\n"
                  "  h = add(three, x)\n" +
                  kClassify);
}

// A class token is the same for all samples, but joins each of them.
TEST(SlicingTest, RepeatedParameters) {
  ExpectSliceable(std::string(kTokens) +
                  "  token = parameter f64[1,1,8] init=normal(1)\n"
                  "  tokens = expand(token, dims=[12,1,8])\n"
                  "  longer = concat(tokens, x, axis=1)\n"
                  "  h = slice(longer, axes=[1], starts=[1], ends=[6])\n" +
                  kClassify + "  first = slice(longer, axes=[1], starts=[0], ends=[1])\n" +
                  "  more = reduce_mean(first)\n");
}

// The numbers of a sample do not depend on the slice that it is in.
TEST(SlicingTest, Dropout) {
  ExpectSliceable(
      "  x = input f64[batch=12,8]\n"
      "  label = input i64[batch=12]\n"
      "  rng = input i64[3]\n"
      "  d = dropout(x, rng, rate=0.5, stream=9)\n"
      "  noise = random_uniform(rng, dims=[12,8], dtype=\"f64\", stream=4)\n"
      "  h = add(d, noise)\n" +
      std::string(kClassify));
}

TEST(SlicingTest, LossesThatAreSums) {
  ExpectSliceable(
      "  x = input f64[batch=12,8]\n"
      "  w = parameter f64[8] init=normal(1)\n"
      "  y = mul(x, w)\n"
      "  s = square(y)\n"
      "  half = constant f64[] 0.5\n"
      "  sum = reduce_sum(s)\n"
      "  loss = mul(sum, half)\n"
      "  output loss\n");
}

// mean + c: the gradient of c is there once.
TEST(SlicingTest, LossesWithARegularizer) {
  ExpectSliceable(
      "  x = input f64[batch=12,8]\n"
      "  w = parameter f64[8] init=normal(1)\n"
      "  y = mul(x, w)\n"
      "  t = tanh(y)\n"
      "  m = reduce_mean(t)\n"
      "  w2 = square(w)\n"
      "  decay = reduce_sum(w2)\n"
      "  loss = add(m, decay)\n"
      "  output loss\n");
}

TEST(SlicingTest, GoesTogetherWithAccumulation) {
  const Graph forward = Parse(std::string(kTokens) + "  h = tanh(x)\n" + kClassify);
  const Result<Left> whole = TrainIn(forward, {"1", 3}), sliced = TrainIn(forward, {"4", 3});
  ASSERT_TRUE(whole.ok() && sliced.ok()) << sliced.status().message();
  ExpectSame(*whole, *sliced, "accumulation");
}

// Copies of activations are made by the same operators from the same numbers.
TEST(SlicingTest, RecomputesToTheSameBits) {
  std::string body = std::string(kImage) +
                     "  k0 = parameter f64[4,2,3,3] init=normal(0.5)\n"
                     "  r0 = conv(x, k0, padding=[1,1,1,1])\n";
  for (int i = 1; i <= 3; ++i) {
    body += fmt::format(
        "  k{0} = parameter f64[4,4,3,3] init=normal(0.5)\n"
        "  c{0} = conv(r{1}, k{0}, padding=[1,1,1,1])\n"
        "  n{0} = gelu(c{0})\n"
        "  a{0} = add(n{0}, r{1})\n"
        "  r{0} = relu(a{0})\n",
        i, i - 1);
  }
  body += "  h = reshape(r3, dims=[12,144])\n  fc = parameter f64[3,144] init=normal(0.1)\n";
  const std::string classify(kClassify);
  const Graph forward = Parse(body + classify.substr(classify.find('\n') + 1));
  const Result<Left> kept = TrainIn(forward, {});
  ASSERT_TRUE(kept.ok()) << kept.status().message();
  for (const char* recompute : {"all", "full", "90%", "80%"}) {
    const Result<Left> again = TrainIn(forward, {.recompute = recompute});
    ASSERT_TRUE(again.ok()) << recompute << ": " << again.status().message();
    EXPECT_EQ(*kept, *again) << recompute;
  }
}

Result<PlannedJob> PlanToFit(const Graph& forward, const std::string& recompute, int64_t fit) {
  const TestMachine test;
  Machine machine = test.get();  // needs what the nominal one does
  const DeviceFacts& nominal = machine.backend->nominal().facts();
  machine.profile.runtime_bytes = nominal.runtime_bytes;
  machine.profile.bytes_per_kernel = nominal.bytes_per_kernel;
  TrainOptions options;
  options.model = "net";
  options.batch = kBatch;
  options.slices = "1";
  options.recompute = recompute;
  options.fit_bytes = fit;
  return PlanTrainingOnly(options, forward, machine);
}

// Forward and backward of a convolution with its pool are one kernel each, whatever is recomputed:
// other kernels would give other bits.
TEST(SlicingTest, RecomputesTheInputOfAConvolutionWithItsPool) {
  const Graph forward = Parse(
      "  x = input f32[12,3,4,4]\n"
      "  r = relu(x)\n"
      "  w = parameter f32[4,3,3,3] init=normal(0.3)\n"
      "  c = conv(r, w, padding=[1,1,1,1])\n"
      "  p, i = max_pool(c, kernel=[2,2], stride=[2,2])\n"
      "  t = tanh(p)\n"
      "  loss = reduce_mean(t)\n"
      "  output loss\n");
  const Result<PlannedJob> job = PlanToFit(forward, "all", 0);
  ASSERT_TRUE(job.ok()) << job.status().message();
  std::multiset<std::string> ops;
  for (const PlannedNode& node : job->program.Find("train")->nodes) ops.insert(node.op);
  EXPECT_EQ(ops.count("relu"), 2u);
  EXPECT_EQ(ops.count("conv_pool_grad_weight"), 1u);
}

TEST(SlicingTest, RecomputesNoMoreThanToFit) {
  std::string body = "  v0 = input f64[batch=12,100000]\n";
  for (int i = 0; i < 6; ++i) {
    body += fmt::format(
        "  w{0} = parameter f64[100000] init=normal(1)\n"
        "  s{0} = mul(v{0}, w{0})\n"
        "  v{1} = gelu(s{0})\n",
        i, i + 1);
  }
  const Graph forward = Parse(body + "  loss = reduce_mean(v6)\n  output loss\n");
  const auto bytes = [&](const std::string& recompute) {
    const Result<PlannedJob> job = PlanToFit(forward, recompute, 0);
    EXPECT_TRUE(job.ok()) << job.status().message();
    return job->memory.peak_bytes;
  };
  const int64_t most = bytes("off"), least = bytes("all");
  ASSERT_LT(least, most);
  const Result<PlannedJob> some = PlanToFit(forward, "auto", (least + most) / 2);
  ASSERT_TRUE(some.ok() && some->fits());
  const std::string values = some->options.recompute;
  EXPECT_GE(std::stoi(values), 1);
  EXPECT_GT(some->memory.peak_bytes, least);
  // The number says it all: a run that goes on plans the same.
  EXPECT_EQ(HashKernelChoices(PlanToFit(forward, values, 0)->program),
            HashKernelChoices(some->program));
  EXPECT_TRUE(PlanToFit(forward, "auto", least)->fits());
  EXPECT_FALSE(PlanToFit(forward, "auto", least / 2)->fits());
}

// Products with an epilogue of gelu round otherwise than products with a gelu behind them.
constexpr std::string_view kPerceptron =
    "  x = input f32[12,300,16]\n"
    "  w0 = parameter f32[16,64] init=normal(0.2)\n"
    "  w1 = parameter f32[64,16] init=normal(0.2)\n"
    "  w2 = parameter f32[16,64] init=normal(0.2)\n"
    "  w3 = parameter f32[64,16] init=normal(0.2)\n"
    "  a0 = matmul(x, w0)\n"
    "  g0 = gelu(a0)\n"
    "  a1 = matmul(g0, w1)\n"
    "  s1 = add(a1, x)\n"
    "  a2 = matmul(s1, w2)\n"
    "  g2 = gelu(a2)\n"
    "  a3 = matmul(g2, w3)\n"
    "  s3 = add(a3, s1)\n"
    "  t = tanh(s3)\n"
    "  loss = reduce_mean(t)\n"
    "  output loss\n";

TEST(SlicingTest, KeepsTheScratchWithinItsBudget) {
  const Graph forward = Parse(std::string(kPerceptron));
  const auto scratch = [&](const std::string& recompute) {
    const Result<PlannedJob> job = PlanToFit(forward, recompute, 0);
    EXPECT_TRUE(job.ok()) << recompute << ": " << job.status().message();
    return job->program.steps.front().scratch_bytes;
  };
  const int64_t kept = scratch("off"), least = scratch("full");
  ASSERT_LT(least, kept * 9 / 10);
  EXPECT_EQ(scratch("100%"), kept);
  EXPECT_LE(scratch("85%"), kept * 85 / 100);
  EXPECT_LE(scratch(fmt::format("{}B", least)), least);
  const Result<PlannedJob> refused = PlanToFit(forward, "1%", 0);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(
      refused.status().message(),
      "--recompute: activations and workspaces take 8.13 MiB with all values recomputed, 80.4 % "
      "of 10.1 MiB without; the budget is 104 KiB. hint: --slices, or a smaller --batch");
  const Result<Left> plain = TrainIn(forward, {}), again = TrainIn(forward, {.recompute = "full"});
  ASSERT_TRUE(plain.ok() && again.ok());
  EXPECT_EQ(*plain, *again);
}

TEST(SlicingTest, TellsOfManyActivationsInAShortStep) {
  const auto plan = [](int64_t width, const std::string& recompute) {
    return PlanToFit(Parse(fmt::format("  x = input f32[batch=12,{0}]\n"
                                       "  w = parameter f32[{0}] init=normal(1)\n"
                                       "  product = mul(x, w)\n"
                                       "  y = relu(product)\n"
                                       "  loss = reduce_mean(y)\n"
                                       "  output loss\n",
                                       width)),
                     recompute, 0);
  };
  const Result<PlannedJob> many = plan(8'000'000, "auto");
  ASSERT_TRUE(many.ok()) << many.status().message();
  EXPECT_EQ(many->options.recompute, "off");
  EXPECT_TRUE(many->keeps_many) << many->memory.arena_bytes;
  EXPECT_FALSE(plan(2'000, "auto")->keeps_many);
  EXPECT_FALSE(plan(8'000'000, "all")->keeps_many);
}

// What a machine's profile says of the program's own bytes differs from day to day; the bits of a
// run must not.
TEST(SlicingTest, MeasuredBytesDoNotChoose) {
  std::string body = "  v0 = input f64[batch=12,200000]\n";
  for (int i = 0; i < 4; ++i) {
    body += fmt::format(
        "  w{0} = parameter f64[200000] init=normal(1)\n"
        "  s{0} = mul(v{0}, w{0})\n"
        "  v{1} = gelu(s{0})\n",
        i, i + 1);
  }
  const Graph forward = Parse(body + "  loss = reduce_mean(v4)\n  output loss\n");
  const TestMachine test;
  std::set<std::string> of_some;
  for (const int64_t fit : {100, 150, 200, 300}) {
    std::set<std::string> chosen;
    for (const int64_t runtime : {0, 20, 40, 80, 160}) {
      Machine machine = test.get();
      machine.profile.runtime_bytes = runtime << 20;
      machine.profile.bytes_per_kernel = runtime << 10;
      TrainOptions options;
      options.model = "net";
      options.batch = kBatch;
      options.fit_bytes = fit << 20;
      const Result<PlannedJob> job = PlanTrainingOnly(options, forward, machine);
      ASSERT_TRUE(job.ok()) << job.status().message();
      chosen.insert(job->options.slices + " " + job->options.recompute);
      EXPECT_GE(job->memory.peak_bytes, runtime << 20);
    }
    EXPECT_EQ(chosen.size(), 1U) << fit << ": " << *chosen.begin() << ", " << *chosen.rbegin();
    of_some.insert(chosen.begin(), chosen.end());
  }
  EXPECT_GT(of_some.size(), 1U);  // the limit does choose
}

TEST(SlicingTest, NamesTheNodeThatCouplesSamples) {
  const std::string start =
      "  x = input f64[batch=12,8]\n"
      "  label = input i64[batch=12]\n"
      "  w = parameter f64[8] init=constant(1)\n"
      "  y = mul(x, w)\n";
  EXPECT_THAT(Refusal(start + "  h, mean, var = batch_norm(y, w, w)\n" + kClassify),
              HasSubstr("batch_norm 'h' (line 6) couples its samples"));
  EXPECT_THAT(Refusal(start + "  h = softmax(y, axis=0)\n" + kClassify),
              HasSubstr("softmax 'h' (line 6) couples its samples"));
  EXPECT_THAT(Refusal(start + "  c = cumsum(y, axis=0)\n  h = tanh(c)\n" + kClassify),
              HasSubstr("cumsum 'c' (line 6) couples its samples"));
}

const char kNorms[] =
    "  k = parameter f64[4,2,3,3] init=normal(0.5)\n"
    "  c = conv(x, k, padding=[1,1,1,1])\n"
    "  scale = parameter f64[4] init=constant(1)\n"
    "  shift = parameter f64[4] init=normal(0.3)\n"
    "  mean = state f64[4] init=zeros role=statistic\n"
    "  var = state f64[4] init=constant(1) role=statistic\n"
    "  rate = constant f64[] 0.1\n"
    "  n1, n1.mean, n1.var = batch_norm(c, scale, shift)\n"
    "  r = relu(n1)\n"
    "  k2 = parameter f64[4,4,3,3] init=normal(0.5)\n"
    "  c2 = conv(r, k2, padding=[1,1,1,1])\n"
    "  n2, n2.mean, n2.var = batch_norm(c2, scale, shift)\n"
    "  sum = add(n2, r)\n"
    "  r2 = relu(sum)\n"
    "  p = reduce_mean(r2, axes=[2,3])\n"
    "  scale3 = parameter f64[4] init=constant(1)\n"
    "  shift3 = parameter f64[4] init=zeros\n"
    "  n3, n3.mean, n3.var = batch_norm(p, scale3, shift3)\n"
    "  w = parameter f64[8,4] init=normal(0.5)\n"
    "  h = matmul(n3, w, transpose_b=1)\n";
const char kRunning[] =
    "  mean1 = mul(n1.mean, rate)\n"
    "  mean2 = add(mean, mean1)\n"
    "  var1 = mul(n1.var, rate)\n"
    "  var2 = add(var, var1)\n"
    "  mean3 = mul(n2.mean, rate)\n"
    "  mean4 = add(mean2, mean3)\n"
    "  var3 = mul(n2.var, rate)\n"
    "  var4 = add(var2, var3)\n"
    "  running3 = state f64[4] init=zeros role=statistic\n"
    "  spread3 = state f64[4] init=constant(1) role=statistic\n"
    "  mean5 = add(running3, n3.mean)\n"
    "  var5 = add(spread3, n3.var)\n"
    "  update mean = mean4\n"
    "  update var = var4\n"
    "  update running3 = mean5\n"
    "  update spread3 = var5\n";

// Its statistics are those of the batch: each node runs on all slices before the next one.
TEST(SlicingTest, BatchNormRunsInStepWithSumsInATree) {
  const std::string body = std::string(kImage) + kNorms + kClassify + kRunning;
  const Graph forward = Parse(body);
  const Result<Left> whole = TrainIn(forward, {});
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  ASSERT_TRUE(whole->contains("spread3"));
  for (const char* recompute : {"off", "all"}) {
    for (const char* slices : {"2", "3", "4", "6", "12"}) {
      for (const bool in_place : {true, false}) {
        const Way way = {slices, 1, in_place, recompute, "tree"};
        const Result<Left> sliced = TrainIn(forward, way);
        ASSERT_TRUE(sliced.ok()) << sliced.status().message();
        ExpectSame(*whole, *sliced, way.slices + " slices, recompute " + recompute);
      }
    }
  }
}

// The divisor is that of all labels, and each slice knows it.
TEST(SlicingTest, MeansOverTheLabelsThatCount) {
  ExpectSliceable(std::string(kTokens) +
                  "  h = tanh(x)\n"
                  "  fc = parameter f64[3,8] init=normal(1)\n"
                  "  logits = matmul(h, fc, transpose_b=1)\n"
                  "  each = softmax_cross_entropy(logits, label, ignore_index=1)\n"
                  "  one = constant i64[] 1\n"
                  "  counts = not_equal(label, one)\n"
                  "  weights = cast(counts, to=\"f64\")\n"
                  "  count = reduce_sum(weights)\n"
                  "  least = constant f64[] 1\n"
                  "  divisor = maximum(count, least)\n"
                  "  sum = reduce_sum(each)\n"
                  "  loss = div(sum, divisor)\n"
                  "  output loss\n");
}

// Weights of classes are divided by those of the whole batch.
TEST(SlicingTest, ShapedLosses) {
  const std::string body = std::string(kTokens) +
                           "  fc = parameter f64[3,8] init=normal(1)\n"
                           "  logits = matmul(x, fc, transpose_b=1)\n"
                           "  each = softmax_cross_entropy(logits, label)\n"
                           "  loss = reduce_mean(each)\n"
                           "  output loss\n";
  LossShape smooth, weighted, focal;
  smooth.label_smoothing = 0.2;
  weighted.class_weights = {1, 0.25, 4};
  focal.focal_gamma = 2;
  LossShape all = weighted;
  all.label_smoothing = 0.2;
  all.focal_gamma = 2;
  LossShape dice = all, dice_alone = weighted;
  dice.dice = 0.5;
  dice_alone.dice = 1;
  for (const LossShape& shape : {smooth, weighted, focal, all, dice, dice_alone}) {
    const Result<Graph> shaped = WithLossShape(Parse(body), shape);
    ASSERT_TRUE(shaped.ok()) << shaped.status().message();
    ExpectSliceable(*shaped, PrintGraph(*shaped));
  }
}

TEST(SlicingTest, RefusesOtherLosses) {
  const std::string start =
      "  x = input f64[batch=12,8]\n"
      "  w = parameter f64[8] init=constant(1)\n"
      "  y = mul(x, w)\n";
  EXPECT_THAT(Refusal(start + "  a = reduce_sum(y)\n  s = square(y)\n  b = reduce_sum(s)\n"
                              "  loss = div(a, b)\n  output loss\n"),
              HasSubstr("div 'loss' (line 8) couples its samples"));
  EXPECT_THAT(Refusal(start + "  a = reduce_mean(y)\n  loss = square(a)\n  output loss\n"),
              HasSubstr("square 'loss' (line 6) couples its samples"));
  EXPECT_THAT(Refusal(start + "  m = reduce_max(y)\n  loss = abs(m)\n  output loss\n"),
              HasSubstr("reduce_max 'm' (line 5) couples its samples"));
}

TEST(SlicingTest, RefusesANumberThatDoesNotDivide) {
  TrainOptions options;
  options.model = options.data = "x";
  options.batch = 12;
  options.slices = "5";
  EXPECT_EQ(CheckOptions(options).message(), "--slices is 5; it must divide --batch, 12");
  options.slices = "many";
  EXPECT_EQ(CheckOptions(options).message(),
            "--slices is 'many'; it must be auto or a number from 1");
  options.slices = "4";
  EXPECT_TRUE(CheckOptions(options).ok());
}

// Layers drawn at random, on [12,6] or [12,2,3].
class RandomNet {
 public:
  explicit RandomNet(unsigned seed) : draw_(seed) {}

  std::string Body() {
    text_ =
        "  x = input f64[batch=12,6]\n"
        "  label = input i64[batch=12]\n";
    for (int layer = 0; layer < 8; ++layer) Layer(fmt::format("v{}", layer));
    text_ += fmt::format(
        "  f = parameter f64[3,6] init=normal(1)\n"
        "  logits = matmul({}, f, transpose_b=1)\n"
        "  each = softmax_cross_entropy(logits, label)\n"
        "  loss = reduce_mean(each)\n  output loss\n",
        at_);
    return text_;
  }

 private:
  void Add(const std::string& name, const std::string& call) {
    text_ += fmt::format("  {} = {}\n", name, call);
  }

  void Layer(const std::string& v) {
    const std::string x = at_;
    switch (draw_() % 9) {
      case 0:
        Add(v, fmt::format("tanh({})", x));
        break;
      case 1:
        Add(v + "w", "parameter f64[6,6] init=normal(0.5)");
        Add(v, fmt::format("matmul({}, {}w)", x, v));
        break;
      case 2:
        Add(v, fmt::format("softmax({}, axis=1)", x));
        break;
      case 3:
        Add(v + "," + v + "m," + v + "r", fmt::format("layer_norm({})", x));
        break;
      case 4:
        Add(v, fmt::format("mul({}, {})", x, before_));
        break;
      case 5:
        Add(v + "t", fmt::format("transpose({})", x));
        Add(v + "s", fmt::format("sigmoid({}t)", v));
        Add(v, fmt::format("transpose({}s)", v));
        break;
      case 6:
        Add(v + "b", fmt::format("reshape({}, dims=[12,2,3])", x));
        Add(v + "m", fmt::format("reduce_max({}b, axes=[2], keep_dims=1)", v));
        Add(v + "d", fmt::format("sub({}b, {}m)", v, v));
        Add(v, fmt::format("reshape({}d, dims=[12,6])", v));
        break;
      case 7:
        Add(v + "w", "parameter f64[1,6] init=normal(1)");
        Add(v + "e", fmt::format("expand({}w, dims=[12,6])", v));
        Add(v, fmt::format("add({}, {}e)", x, v));
        break;
      default:
        Add(v + "c", fmt::format("concat({}, {}, axis=1)", x, before_));
        Add(v, fmt::format("slice({}c, axes=[1], starts=[3], ends=[9])", v));
    }
    before_ = x;
    at_ = v;
  }

  std::mt19937 draw_;
  std::string text_, at_ = "x", before_ = "x";
};

TEST(SlicingTest, RandomGraphs) {
  for (unsigned seed = 0; seed < 25; ++seed) ExpectSliceable(RandomNet(seed).Body());
}

}  // namespace
}  // namespace ridge
