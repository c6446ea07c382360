// The law of the step is that of every pass: the same results, bit for bit.  Networks of random
// shape with one or two pools, and everything that may stand in the way, run with and without it,
// alone and with each other pass before and after it.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ridge/graph/autodiff.h"
#include "ridge/graph/builder.h"
#include "ridge/graph/test_results.h"
#include "ridge/lower/passes.h"
#include "ridge/lower/pipeline.h"
#include "ridge/lower/test_rules.h"

namespace ridge {
namespace {

using Ints = std::vector<int64_t>;

constexpr TestValues kFewValues{.count = 5, .step = 1};  // so that windows have ties

// What may differ from the form that is looked for.
struct Form {
  bool relu = true;
  bool bias = true;
  bool input_gradient = false;  // x is a parameter
  bool read_conv = false;       // an output reads between the nodes
  bool read_index = false;
  bool train = true;
  Ints padding = {}, stride = {};
  Ints pool_kernel = {2, 2};
  int64_t channels = 1, filters = 3, kernel = 3, height = 9, width = 8;
  DType dtype = DType::kF32;
};

Graph Network(const Form& f) {
  GraphBuilder b("net");
  const TensorType image{f.dtype, {2, f.channels, f.height, f.width}};
  const Value x =
      f.input_gradient ? b.Parameter("image", image, Init::Uniform(1)) : b.Input("x", image);
  const Value w =
      b.Parameter("w", {f.dtype, {f.filters, f.channels, f.kernel, f.kernel}}, Init::Uniform(1));
  const Value bias = b.Parameter("bias", {f.dtype, {f.filters}}, Init::Uniform(1));
  const Value conv = Op("conv", f.bias ? std::vector<Value>{x, w, bias} : std::vector<Value>{x, w},
                        {{"padding", f.padding}, {"stride", f.stride}});
  const Value active = f.relu ? Relu(conv) : conv;
  const std::vector<Value> pooled =
      OpOutputs("max_pool", {active}, {{"kernel", f.pool_kernel}, {"stride", f.pool_kernel}});
  const Value weights = b.Input("weights", pooled[0].type());
  const Value loss = Mean(pooled[0] * weights);
  b.Output("loss", loss);
  if (f.read_conv) b.Output("conv", conv);
  if (f.read_index) b.Output("index", pooled[1]);
  if (f.train) {
    std::vector<Value> params = {w};
    if (f.bias) params.push_back(bias);
    if (f.input_gradient) params.push_back(x);
    Result<std::vector<Value>> grads = AppendGradients(b, loss, params);
    EXPECT_TRUE(grads.ok()) << grads.status().message();
    for (size_t i = 0; i < grads->size(); ++i) b.Output("grad" + std::to_string(i), (*grads)[i]);
  }
  Result<Graph> graph = b.Build();
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *std::move(graph);
}

Graph Passed(const Graph& graph, const std::string& spec) {
  Result<Graph> after = RunPasses(graph, *ParsePassSpec(spec), UnlimitedRules());
  EXPECT_TRUE(after.ok()) << after.status().message();
  return *std::move(after);
}

int64_t Count(const Graph& graph, std::string_view op) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                       [&](const Node& node) { return node.op->name == op; });
}

Form RandomForm(uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  Form f;
  f.relu = pick(3) > 0;
  f.bias = pick(3) > 0;
  f.input_gradient = pick(4) == 0;
  f.read_conv = pick(8) == 0;
  f.read_index = pick(8) == 0;
  f.train = pick(4) > 0;
  f.kernel = 1 + pick(4);
  f.channels = 1 + pick(3);
  f.filters = 1 + pick(5);
  f.height = 6 + pick(5);
  f.width = 6 + pick(5);
  if (pick(2) == 0) f.padding = {pick(3), pick(3), pick(3), pick(3)};
  if (pick(6) == 0) f.stride = {1, 2};
  if (pick(6) == 0) f.pool_kernel = {2, 1};
  if (pick(6) == 0) f.dtype = DType::kF64;
  return f;
}

TEST(ConvPool, KeepsEveryBitAloneAndInPairs) {
  int64_t found = 0;
  for (uint32_t seed = 0; seed < 120; ++seed) {
    const Graph graph = Network(RandomForm(seed));
    ExpectSameBits(graph, *FuseConvPool(graph, UnlimitedRules()), kFewValues);
    for (const PassInfo& other : AllPasses()) {
      if (other.run == nullptr) continue;
      const Graph first = *other.run(graph, UnlimitedRules());
      const Graph then = *FuseConvPool(first, UnlimitedRules());
      found += Count(then, "conv_pool");
      ExpectSameBits(first, then, kFewValues);
      ExpectSameBits(then, *other.run(then, UnlimitedRules()), kFewValues);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(found, 100);
}

TEST(ConvPool, TakesAWholeTrainingStep) {
  for (const bool relu : {true, false}) {
    for (const bool bias : {true, false}) {
      Form form;
      form.relu = relu;
      form.bias = bias;
      const Graph after = Passed(Network(form), "");
      EXPECT_EQ(Count(after, "conv_pool"), 1);
      EXPECT_EQ(Count(after, "conv_pool_grad_weight"), 1);
      for (const char* gone : {"conv", "relu", "max_pool", "max_pool_grad", "relu_grad"})
        EXPECT_EQ(Count(after, gone), 0) << gone << PrintGraph(after);
    }
  }
}

TEST(ConvPool, KeepsTheGradientOfThePoolForOtherReaders) {
  const Graph after = Passed(Network({.input_gradient = true}), "");
  EXPECT_EQ(Count(after, "conv_pool"), 1);
  EXPECT_EQ(Count(after, "max_pool_grad"), 1);
  EXPECT_EQ(Count(after, "conv_grad_input"), 1);
  EXPECT_EQ(Count(after, "conv_grad_weight"), 1);
}

TEST(ConvPool, LeavesWhatIsReadAndOtherWindows) {
  const Form untouched[] = {
      {.read_conv = true}, {.read_index = true}, {.stride = {1, 2}}, {.pool_kernel = {2, 1}}};
  for (const Form& form : untouched)
    EXPECT_EQ(Count(Passed(Network(form), ""), "conv_pool"), 0) << PrintGraph(Network(form));
}

TEST(ConvPool, LeavesWhatTheDeviceDoesNotFuse) {
  EXPECT_EQ(Count(*FuseConvPool(Network({}), FusesNothing()), "conv_pool"), 0);
}

}  // namespace
}  // namespace ridge
