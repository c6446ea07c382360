// The laws: the same bits from fewer bytes, and nothing is made again that is not cheap.  In f64,
// where the reference's statistics are not rounded on their way to the copies.
#include "ridge/plan/memory/recompute.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ridge/graph/autodiff.h"
#include "ridge/graph/builder.h"
#include "ridge/graph/passes/pipeline.h"
#include "ridge/graph/test_results.h"

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
    const Value w = Param(name + ".w", {4, b.dims(x)[1], 3, 3});
    const Value conv = b.Op("conv", {x, w}, {{"padding", std::vector<int64_t>{1, 1, 1, 1}}}, name);
    return b.OpOutputs("batch_norm",
                       {conv, Param(name + ".scale", {4}), Param(name + ".shift", {4})}, {},
                       name + ".norm")[0];
  }

  Graph Train(Value last) {
    const Value loss = b.ReduceMean(b.Op("square", {last}), {}, false);
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
  x = net.b.Relu(net.ConvNorm(x, "stem"));
  for (int i = 0; i < blocks; ++i) {
    const std::string name = "block" + std::to_string(i);
    const Value inner = net.b.Relu(net.ConvNorm(x, name + ".a"));
    x = net.b.Relu(net.b.Add(net.ConvNorm(inner, name + ".b"), x));
  }
  return net.Train(x);
}

Graph Again(const Graph& graph) {
  Result<Graph> again = RecomputeValues(graph, FindRecomputable(graph));
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
    const Graph again = Again(graph);
    EXPECT_FALSE(OpsAgain(again).empty());
    ExpectSameBits(graph, again);
    const Result<Graph> fused = RunPasses(again, *ParsePassSpec("only:fuse"), nullptr);
    ASSERT_TRUE(fused.ok()) << fused.status().message();
    ExpectSameBits(graph, *fused);
  }
}

// Each result of a block is made from the copy of the one before: no convolution runs again.
TEST(RecomputeTest, FollowsChains) {
  const std::multiset<std::string> ops = OpsAgain(Again(Residual(4)));
  EXPECT_EQ(ops.count("conv"), 0U);
  EXPECT_EQ(ops.count("batch_norm"), 0U);
  EXPECT_GE(ops.count("batch_norm_inference"), 7U);
  EXPECT_GE(ops.count("add"), 3U);
}

// relu of a convolution: to make it again the convolution's result would be kept instead.
TEST(RecomputeTest, NeedsInputsThatAreKept) {
  Net net;
  Value x = net.b.Input("x", {DType::kF64, {2, 4, 6, 5}});
  for (const char* name : {"a", "b", "c"}) {
    const Value w = net.Param(name, {4, 4, 3, 3});
    x = net.b.Relu(net.b.Op("conv", {x, w}, {{"padding", std::vector<int64_t>{1, 1, 1, 1}}}));
  }
  EXPECT_TRUE(FindRecomputable(net.Train(x)).empty());
}

TEST(RecomputeTest, MakesGeluAgainFromWhatItsGradientReads) {
  Net net;
  Value x = net.b.Input("x", {DType::kF64, {8, 6}});
  for (const char* name : {"a", "b", "c"})
    x = net.b.Op("gelu", {net.b.MatMul(x, net.Param(name, {6, 6}))});
  const Graph graph = net.Train(x);
  const Graph again = Again(graph);
  EXPECT_GE(OpsAgain(again).count("gelu"), 1U);
  ExpectSameBits(graph, again);
}

TEST(RecomputeTest, LeavesGraphsWithoutGradients) {
  GraphBuilder b("net");
  const Value x = b.Input("x", {DType::kF64, {8, 6}});
  const Value r = b.Relu(x);
  b.Output("y", b.Add(b.Op("tanh", {r}), b.Op("exp", {b.Op("tanh", {r})})));
  EXPECT_TRUE(FindRecomputable(*b.Build()).empty());
}

}  // namespace
}  // namespace ridge
