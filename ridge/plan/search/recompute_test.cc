// The laws: the same bits from fewer bytes, and nothing is recomputed that is not cheap.  In f64,
// where the reference's statistics are not rounded on their way to the copies.
#include "ridge/plan/search/recompute.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ridge/graph/autodiff.h"
#include "ridge/graph/builder.h"
#include "ridge/graph/test_results.h"
#include "ridge/graph/text.h"
#include "ridge/lower/pipeline.h"
#include "ridge/lower/test_costs.h"
#include "ridge/lower/test_rules.h"
#include "ridge/plan/memory/live_curve.h"
#include "ridge/plan/search/recompute_facts.h"
#include "ridge/plan/search/recompute_pick.h"

namespace ridge {
namespace {

struct Net {
  GraphBuilder b{"net"};
  std::vector<Value> params;

  Value Param(const std::string& name, Dims dims) {
    params.push_back(b.Parameter(name, {DType::kF64, std::move(dims)}, Init::Uniform(0.5)));
    return params.back();
  }

  Value ConvNorm(Value x, const std::string& name) {
    const Value w = Param(name + ".w", {4, x.dims()[1], 3, 3});
    const Value conv = Op("conv", {x, w}, {{"padding", {1, 1, 1, 1}}}, name);
    return OpOutputs("batch_norm", {conv, Param(name + ".scale", {4}), Param(name + ".shift", {4})},
                     {}, name + ".norm")[0];
  }

  Graph Train(Value last) {
    const Value loss = Mean(Square(last));
    b.Output("loss", loss);
    Result<std::vector<Value>> grads = AppendGradients(b, loss, params);
    EXPECT_TRUE(grads.ok()) << grads.status().message();
    for (size_t i = 0; i < grads->size(); ++i) b.Output("grad" + std::to_string(i), (*grads)[i]);
    Result<Graph> graph = b.Build();
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return *std::move(graph);
  }
};

// Residual blocks: relu(norm(conv)), norm(conv), and relu of the sum with what came in.
Graph Residual(int blocks) {
  Net net;
  Value x = net.b.Input("x", {DType::kF64, {2, 3, 6, 5}});
  x = Relu(net.ConvNorm(x, "stem"));
  for (int i = 0; i < blocks; ++i) {
    const std::string name = "block" + std::to_string(i);
    const Value inner = Relu(net.ConvNorm(x, name + ".a"));
    x = Relu(net.ConvNorm(inner, name + ".b") + x);
  }
  return net.Train(x);
}

const RecomputeLimits kEvery = {.any = true, .every = true};

RecomputeSet Find(const Graph& graph, const RecomputeLimits& limits = kEvery) {
  return FindRecomputable(graph, limits, TestCosts());
}

Graph Rematerialize(const Graph& graph, const RecomputeLimits& limits = kEvery) {
  Result<Graph> again = RecomputeValues(graph, Find(graph, limits));
  EXPECT_TRUE(again.ok()) << again.status().message();
  EXPECT_TRUE(CheckGraph(*again).ok()) << PrintGraph(*again);
  return *std::move(again);
}

std::multiset<std::string> OpsAgain(const Graph& graph) {
  std::multiset<std::string> ops;
  for (const Node& node : graph.nodes()) {
    if (graph.value(node.outputs[0]).name.find(".again") != std::string::npos)
      ops.insert(node.op->name);
  }
  return ops;
}

TEST(RecomputeTest, KeepsEveryBit) {
  for (int blocks = 1; blocks <= 4; ++blocks) {
    const Graph graph = Residual(blocks);
    const Graph again = Rematerialize(graph);
    EXPECT_FALSE(OpsAgain(again).empty());
    ExpectSameBits(graph, again);
    const Result<Graph> fused = RunPasses(again, *ParsePassSpec("only:fuse"), UnlimitedRules());
    ASSERT_TRUE(fused.ok()) << fused.status().message();
    ExpectSameBits(graph, *fused);
  }
}

// Each result of a block is made from the copy of the one before: no convolution runs again.
TEST(RecomputeTest, FollowsChains) {
  const std::multiset<std::string> ops = OpsAgain(Rematerialize(Residual(4)));
  EXPECT_EQ(ops.count("conv"), 0U);
  EXPECT_EQ(ops.count("batch_norm"), 0U);
  EXPECT_GE(ops.count("batch_norm_inference"), 7U);
  EXPECT_GE(ops.count("add"), 3U);
}

// relu of a convolution: to recompute it the convolution's result would be kept instead.
TEST(RecomputeTest, NeedsInputsThatAreKept) {
  Net net;
  Value x = net.b.Input("x", {DType::kF64, {2, 4, 6, 5}});
  for (const char* name : {"a", "b", "c"}) {
    const Value w = net.Param(name, {4, 4, 3, 3});
    x = Relu(Op("conv", {x, w}, {{"padding", {1, 1, 1, 1}}}));
  }
  EXPECT_TRUE(Find(net.Train(x)).empty());
}

TEST(RecomputeTest, MakesGeluAgainFromWhatItsGradientReads) {
  Net net;
  Value x = net.b.Input("x", {DType::kF64, {8, 6}});
  for (const char* name : {"a", "b", "c"}) x = Gelu(MatMul(x, net.Param(name, {6, 6})));
  const Graph graph = net.Train(x);
  const Graph again = Rematerialize(graph);
  EXPECT_GE(OpsAgain(again).count("gelu"), 1U);
  ExpectSameBits(graph, again);
}

// Of the graph's own schedule, in which copies are nodes as all others.
int64_t PeakBytes(const Graph& graph) {
  const RecomputeFacts facts(graph, TestCosts());
  LiveCurve curve(facts.places());
  for (size_t v = 0; v < facts.values(); ++v) {
    const auto id = static_cast<ValueId>(v);
    if (facts.first(id) >= 0 && facts.IsScratch(id))
      curve.Add(facts.first(id), facts.last(id), facts.Bytes(id));
  }
  return curve.peak_bytes();
}

Graph Gelus(int layers) {
  Net net;
  Value x = net.b.Input("x", {DType::kF64, {64, 6}});
  for (int i = 0; i < layers; ++i) x = Gelu(MatMul(x, net.Param("w" + std::to_string(i), {6, 6})));
  return net.Train(x);
}

TEST(RecomputeTest, TakesOneValueAfterTheOther) {
  for (const Graph& graph : {Residual(4), Gelus(5)}) {
    const RecomputeSet most = Find(graph, {.any = true});
    ASSERT_GE(most.chosen, 2);
    std::vector<bool> fewer(most.values.size(), false);
    for (int64_t n = 0; n <= most.chosen; ++n) {
      const RecomputeLimits limits = {.any = true, .most_values = n};
      const RecomputeSet set = Find(graph, limits);
      EXPECT_EQ(set.chosen, n);
      for (size_t v = 0; v < fewer.size(); ++v) EXPECT_LE(fewer[v], set.values[v]);
      fewer = set.values;
      ExpectSameBits(graph, Rematerialize(graph, limits));
    }
    EXPECT_LT(PeakBytes(Rematerialize(graph, {.any = true})), PeakBytes(graph));
  }
}

TEST(RecomputeTest, TakesNoMoreThanIsEnough) {
  const Graph graph = Gelus(6);
  const int64_t kept = PeakBytes(graph);
  const int64_t most = kept - PeakBytes(Rematerialize(graph, {.any = true}));
  for (const int64_t enough : {int64_t{1}, most / 2, most}) {
    const int64_t chosen = Find(graph, {.any = true, .enough_bytes = enough}).chosen;
    const auto freed = [&](int64_t values) {
      return kept - PeakBytes(Rematerialize(graph, {.any = true, .most_values = values}));
    };
    EXPECT_GE(freed(chosen), enough);
    EXPECT_LT(freed(chosen - 1), enough);
  }
}

// The norm moves as many bytes as gelu, for less arithmetic.
TEST(RecomputeTest, TakesFirstWhatFreesMostForItsTime) {
  Net net;
  Value x = net.b.Input("x", {DType::kF64, {64, 6}});
  for (const char* name : {"a", "b", "c"}) {
    x = Gelu(MatMul(x, net.Param(name, {6, 6})));
    x = MatMul(x, net.Param(std::string(name) + "2", {6, 6}));
    x = OpOutputs("layer_norm", {x}, {}, std::string(name) + ".norm")[0];
  }
  const Graph graph = net.Train(x);
  DeviceProfile device = TestDevice(/*threads=*/1);
  device.launch_s = 0;
  const Roofline slow(device);
  const auto ops = [&](const RecomputeLimits& limits) {
    std::multiset<std::string> names;
    const RecomputeSet set = FindRecomputable(graph, limits, slow);
    for (size_t v = 0; v < set.values.size(); ++v) {
      if (set.values[v])
        names.insert(graph.node(graph.value(static_cast<ValueId>(v)).producer).op->name);
    }
    return names;
  };
  EXPECT_EQ(ops({.any = true, .most_values = 1}).count("gelu"), 0U);
  EXPECT_GE(ops({.any = true}).count("gelu"), 1U);
  EXPECT_TRUE(ops({.any = true, .least_bytes_per_s = 1e12}).empty());
}

const RecomputeLimits kFull = {.any = true, .expensive = true};

Graph Dropouts(int layers) {
  Net net;
  const Value rng = net.b.Input("rng", {DType::kI64, {3}});
  Value x = net.b.Input("x", {DType::kF64, {64, 6}});
  for (int i = 0; i < layers; ++i) {
    const std::string name = std::to_string(i);
    x = Tanh(MatMul(x, net.Param("w" + name, {6, 6})));
    x = OpOutputs("dropout", {x, rng}, {{"rate", 0.3}, {"stream", i}}, "drop" + name)[0];
  }
  return net.Train(x);
}

Graph Perceptron(const std::vector<int64_t>& widths) {
  Net net;
  Value x = net.b.Input("x", {DType::kF64, {64, widths[0]}});
  for (size_t i = 1; i < widths.size(); ++i)
    x = Tanh(MatMul(x, net.Param("w" + std::to_string(i), {widths[i - 1], widths[i]})));
  return net.Train(x);
}

TEST(RecomputeTest, KeepsEveryBitWithinEveryBudget) {
  for (const Graph& graph :
       {Residual(4), Gelus(8), Gelus(40), Dropouts(6), Perceptron({6, 9, 3, 8, 5, 7})}) {
    const int64_t kept = PeakBytes(graph);
    int64_t least = kept;
    for (const double share : {1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2}) {
      RecomputeLimits limits = kFull;
      limits.enough_bytes = static_cast<int64_t>((1 - share) * static_cast<double>(kept));
      const Graph again = Rematerialize(graph, limits);
      ExpectSameBits(graph, again);
      EXPECT_LE(PeakBytes(again), least) << share;
      least = std::min(least, PeakBytes(again));
    }
    EXPECT_LT(least, kept * 3 / 4);
  }
}

// The readers of a value may all come after the update of what it is made from.
TEST(RecomputeTest, MakesNothingAgainFromNewWeights) {
  const Result<Graph> graph = ParseGraph(
      "graph net\n"
      "  x = input f64[64,6]\n"
      "  w = parameter f64[6,8] init=normal(0.4)\n"
      "  y = matmul(x, w)\n"
      "  wide = exp(y)\n"
      "  sum = reduce_sum(wide)\n"
      "  large = expand(sum, dims=[64,32])\n"
      "  larger = exp(large)\n"
      "  total = reduce_sum(larger)\n"
      "  new = mul(w, w) role=optimizer\n"
      "  again = tanh(y)\n"
      "  output total\n"
      "  output again\n"
      "  update w = new\n",
      "net");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const RecomputeFacts facts(*graph, TestCosts());
  EXPECT_TRUE(facts.Candidates(/*expensive=*/true).empty());
}

// The sums of the blocks are kept, and what is within a block is made from the one before.
TEST(RecomputeTest, RunsConvolutionsAgainWhereThatIsAskedFor) {
  const Graph graph = Residual(6);
  EXPECT_GE(OpsAgain(Rematerialize(graph, kFull)).count("conv"), 4U);
  EXPECT_LT(PeakBytes(Rematerialize(graph, kFull)), PeakBytes(Rematerialize(graph, {.any = true})));
}

// All subsets of the candidates are tried.
TEST(RecomputeTest, TakesAtMostAFewPercentMoreTimeThanTheBestChoice) {
  for (const Graph& graph : {Residual(2), Gelus(5), Perceptron({6, 9, 3, 8, 5, 7, 6, 4}),
                             Perceptron({6, 2, 13, 8, 3, 7, 9, 4}),
                             Perceptron({3, 1, 5, 2, 7, 3, 8, 5, 7, 6, 4}), Dropouts(5)}) {
    const RecomputeFacts facts(graph, TestCosts());
    const std::vector<RematCandidate> candidates = facts.Candidates(/*expensive=*/true);
    ASSERT_GE(candidates.size(), 4U);
    ASSERT_LE(candidates.size(), 14U);
    std::vector<RecomputeEffect> all;
    int64_t most = 0;
    for (uint32_t bits = 0; bits < (uint32_t{1} << candidates.size()); ++bits) {
      std::vector<bool> picked;
      for (size_t c = 0; c < candidates.size(); ++c) picked.push_back((bits >> c & 1U) != 0);
      all.push_back(EffectOf(facts, candidates, picked));
      most = std::max(most, all.back().freed_bytes);
    }
    for (int share = 1; share <= 9; ++share) {
      const int64_t enough = most * share / 10;
      double best = 1e9;
      for (const RecomputeEffect& effect : all) {
        if (effect.freed_bytes >= enough) best = std::min(best, effect.seconds);
      }
      const RecomputeEffect found =
          EffectOf(facts, candidates,
                   PickRecomputed(facts, candidates,
                                  {.any = true, .enough_bytes = enough, .expensive = true}));
      EXPECT_GE(found.freed_bytes, enough);
      EXPECT_LE(found.seconds, 1.05 * best) << candidates.size() << " candidates, " << share;
    }
  }
}

TEST(RecomputeTest, LeavesGraphsWithoutGradients) {
  GraphBuilder b("net");
  const Value x = b.Input("x", {DType::kF64, {8, 6}});
  const Value r = Relu(x);
  const Value e = Exp(Tanh(r));
  b.Output("y", Tanh(r) + e);
  EXPECT_TRUE(Find(*b.Build()).empty());
}

}  // namespace
}  // namespace ridge
