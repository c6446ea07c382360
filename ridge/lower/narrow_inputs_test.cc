#include "ridge/lower/narrow_inputs.h"

#include <gtest/gtest.h>

#include "ridge/graph/text.h"
#include "ridge/graph/verify.h"

namespace ridge {
namespace {

NamedGraph Parse(const std::string& name, const std::string& body) {
  Result<Graph> graph = ParseGraph("graph step\n" + body, "g.ridge");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return {name, *std::move(graph)};
}

std::vector<NamedGraph> Narrowed(std::vector<NamedGraph> graphs) {
  Result<std::vector<NamedGraph>> narrowed = NarrowInputs(std::move(graphs));
  EXPECT_TRUE(narrowed.ok()) << narrowed.status().message();
  for (const NamedGraph& named : *narrowed)
    EXPECT_TRUE(CheckGraph(named.graph).ok()) << CheckGraph(named.graph).message();
  return *std::move(narrowed);
}

constexpr char kTrain[] = R"(  x = input f32[4,8]
  w = parameter bf16[8,2] init=zeros
  low = cast(x, to="bf16")
  y = matmul(low, w)
  output y
)";

std::string TypeOfX(const NamedGraph& named) {
  return TypeToString(named.graph.type(named.graph.FindValue("x")));
}

TEST(NarrowInputs, AnInputThatIsCastFirstComesInTheTypeOfItsCast) {
  EXPECT_EQ(PrintGraph(Narrowed({Parse("train", kTrain)})[0].graph), R"(graph step
  x = input bf16[4,8]
  w = parameter bf16[8,2] init=zeros
  y = matmul(x, w)
  output y
)");
}

TEST(NarrowInputs, AllGraphsThatReadAnInputMustCastItToTheSame) {
  const std::string same = "  x = input f32[4,8]\n  z = cast(x, to=\"bf16\")\n  output z\n";
  const std::string half = "  x = input f32[4,8]\n  z = cast(x, to=\"f16\")\n  output z\n";
  const std::string exact = "  x = input f32[4,8]\n  z = relu(x)\n  output z\n";
  const std::string unread =
      "  x = input f32[4,8]\n  u = input f32[4]\n  z = relu(u)\n  output z\n";
  const auto types = [](const std::string& eval) {
    const std::vector<NamedGraph> graphs = Narrowed({Parse("train", kTrain), Parse("eval", eval)});
    return TypeOfX(graphs[0]) + " " + TypeOfX(graphs[1]);
  };
  EXPECT_EQ(types(same), "bf16[4,8] bf16[4,8]");
  EXPECT_EQ(types(unread), "bf16[4,8] bf16[4,8]");
  EXPECT_EQ(types(half), "f32[4,8] f32[4,8]");
  EXPECT_EQ(types(exact), "f32[4,8] f32[4,8]");
}

TEST(NarrowInputs, WhatIsReadExactlyOrIsANumberStays) {
  const auto stays = [](const std::string& body) {
    const NamedGraph before = Parse("train", body);
    EXPECT_EQ(PrintGraph(Narrowed({before})[0].graph), PrintGraph(before.graph));
  };
  stays("  x = input f32[4]\n  y = cast(x, to=\"bf16\")\n  z = relu(x)\n  output y\n  output z\n");
  stays("  x = input f32[4]\n  y = cast(x, to=\"bf16\")\n  output y\n  output x\n");
  stays("  x = input f32[4]\n  y = cast(x, to=\"f64\")\n  output y\n");
  stays("  x = input f32[]\n  y = cast(x, to=\"bf16\")\n  output y\n");
  stays("  x = input i64[4]\n  y = cast(x, to=\"bf16\")\n  output y\n");
  stays(
      "  x = input f32[4]\n  s = state f32[4] init=zeros\n  y = cast(x, to=\"bf16\")\n"
      "  output y\n  update s = x\n");
}

TEST(NarrowInputs, AResultOfTheGraphMayBeTheInputItself) {
  const std::string body = "  x = input f32[4]\n  y = cast(x, to=\"f16\")\n  output y\n";
  EXPECT_EQ(TypeOfX(Narrowed({Parse("train", body)})[0]), "f16[4]");
}

}  // namespace
}  // namespace ridge
