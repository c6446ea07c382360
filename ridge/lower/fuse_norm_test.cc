// The law: the same results; forward to the last bit, backward but for the rounding of statistics.
#include "ridge/lower/fuse_norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ridge/graph/autodiff.h"
#include "ridge/graph/builder.h"
#include "ridge/graph/test_results.h"
#include "ridge/lower/pipeline.h"
#include "ridge/lower/test_rules.h"

namespace ridge {
namespace {

struct Form {
  bool relu = true, add = false, second_norm = false, read_norm = false;
  Dims image = {3, 4, 5, 5};
};

struct Net {
  GraphBuilder b{"net"};
  std::vector<Value> params;

  Value Norm(Value x, const std::string& name) {
    for (const char* part : {".scale", ".shift"})
      params.push_back(b.Parameter(name + part, {DType::kF32, {x.dims()[1]}}, Init::Uniform(1)));
    return OpOutputs("batch_norm", {x, params[params.size() - 2], params.back()}, {}, name)[0];
  }
};

Graph Network(const Form& f, bool train) {
  Net net;
  const TensorType image{DType::kF32, f.image};
  net.params.push_back(net.b.Parameter("image", image, Init::Uniform(1)));
  const Value other = net.b.Input("other", image);
  const Value norm = net.Norm(net.params[0], "norm");
  Value y = norm;
  if (f.add) y = y + (f.second_norm ? net.Norm(other, "second") : other);
  if (f.relu) y = Relu(y);
  if (f.read_norm) net.b.Output("norm", norm);
  net.b.Output("y", y);
  const Value loss = Mean(y * other);
  net.b.Output("loss", loss);
  if (train) {
    Result<std::vector<Value>> grads = AppendGradients(net.b, loss, net.params);
    EXPECT_TRUE(grads.ok()) << grads.status().message();
    for (size_t i = 0; i < grads->size(); ++i)
      net.b.Output("grad" + std::to_string(i), (*grads)[i]);
  }
  Result<Graph> graph = net.b.Build();
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *std::move(graph);
}

Graph Fused(const Graph& graph, const RewriteRules& rules = UnlimitedRules()) {
  Result<Graph> after = FuseNorms(graph, rules);
  EXPECT_TRUE(after.ok() && CheckGraph(*after).ok()) << PrintGraph(graph);
  const auto expected = TestResults(graph), got = TestResults(*after);
  for (const auto& [name, tensor] : expected) {
    if (!name.starts_with("grad")) {
      EXPECT_TRUE(tensor.same_bits(got.at(name))) << name << "\n" << PrintGraph(*after);
      continue;
    }
    for (int64_t i = 0; i < tensor.elements(); ++i)
      EXPECT_NEAR(LoadAsDouble(DType::kF32, tensor.data(), i),
                  LoadAsDouble(DType::kF32, got.at(name).data(), i), 1e-5);
  }
  return *std::move(after);
}

int64_t Count(const Graph& graph, std::string_view op) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                       [&](const Node& node) { return node.op->name == op; });
}

std::string Epilogues(const Graph& graph) {
  std::string all;
  for (const Node& node : graph.nodes()) {
    if (node.op->name == "batch_norm") all += "[" + node.attrs.text("epilogue") + "]";
  }
  return all;
}

TEST(FuseNorm, TakesReluAndItsMask) {
  const Graph graph = Fused(Network({}, /*train=*/true));
  EXPECT_EQ(Epilogues(graph), "[relu]");
  EXPECT_EQ(Count(graph, "relu") + Count(graph, "relu_grad"), 0) << PrintGraph(graph);
}

TEST(FuseNorm, TakesTheSumButKeepsTheMaskOfIt) {
  const Graph graph = Fused(Network({.add = true}, /*train=*/true));
  EXPECT_EQ(Epilogues(graph), "[add,relu]");
  EXPECT_EQ(Count(graph, "relu_grad"), 1) << PrintGraph(graph);
}

TEST(FuseNorm, LetsTheLaterOfTwoNormsAdd) {
  EXPECT_EQ(Epilogues(Fused(Network({.add = true, .second_norm = true}, true))), "[][add,relu]");
  EXPECT_EQ(Epilogues(Fused(Network({.relu = false, .add = true}, false))), "[add]");
}

TEST(FuseNorm, LeavesWhatIsReadBetween) {
  EXPECT_EQ(Epilogues(Fused(Network({.read_norm = true}, true))), "[]");
}

TEST(FuseNorm, LeavesWhatTheDeviceDoesNotFuse) {
  const Graph graph = Fused(Network({}, /*train=*/true), FusesNothing());
  EXPECT_EQ(Epilogues(graph), "[]");
  EXPECT_EQ(Count(graph, "relu_grad"), 1) << PrintGraph(graph);
}

}  // namespace
}  // namespace ridge
