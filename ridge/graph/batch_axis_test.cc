// Slices of a graph: which are found, and how large they are.
#include "ridge/graph/batch_axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ridge/graph/text.h"

namespace ridge {
namespace {

Graph Parse(const std::string& body) {
  Result<Graph> graph = ParseGraph("graph net\n" + body, "net");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? *std::move(graph) : Graph();
}

// Cut in two along dimension 0 of every input.
Result<Graph> Halves(const Graph& graph, SliceOrder order = SliceOrder::kOneByOne) {
  std::vector<ValueId> roots;
  for (const GraphOutput& output : graph.outputs()) roots.push_back(output.value);
  RIDGE_ASSIGN_OR_RETURN(const BatchAxes axes,
                         FindBatchAxes(graph, roots, graph.ValuesOfKind(ValueKind::kInput), order));
  return SliceGraph(graph, axes, 2);
}

TEST(BatchAxis, AttentionOfEveryLayoutIsCut) {
  for (const char* attention :
       {"  q = input f32[4,2,3,5]\n  y, lse = attention(q, q, q, scale=0.5)\n",
        "  q = input f32[4,3,2,5]\n  y, lse = attention(q, q, q, scale=0.5, layout=\"rows\")\n",
        "  q = input f32[4,3,3,2,5]\n  y, lse = attention(q, scale=0.5, layout=\"packed\")\n"}) {
    const Graph graph = Parse(std::string(attention) + "  loss = reduce_mean(y)\n  output loss\n");
    const Result<Graph> half = Halves(graph);
    ASSERT_TRUE(half.ok()) << half.status().message();
    const ValueId y = half->FindValue("y");
    Dims want = graph.type(graph.FindValue("y")).dims;
    want[0] = 2;
    EXPECT_EQ(half->type(y).dims, want);
  }
}

TEST(BatchAxis, AnotherMaskForEverySampleIsCutWithThem) {
  const Graph graph = Parse(R"(
  q = input f32[4,3,3,2,5]
  m = input f32[4,1,3,3]
  y, lse = attention(q, _, _, m, scale=0.5, layout="packed")
  loss = reduce_mean(y)
  output loss
)");
  const Result<Graph> half = Halves(graph);
  ASSERT_TRUE(half.ok()) << half.status().message();
  EXPECT_EQ(half->type(half->FindValue("m")).dims, (Dims{2, 1, 3, 3}));
}

// What couples samples of the inputs is computed for the whole batch in every slice, each value
// once however many paths lead to it.
TEST(BatchAxis, AValueOfTheWholeBatchIsComputedOnce) {
  std::string body = "  x = input f32[4,3]\n  n = input f32[4]\n  z0 = neg(n)\n";
  constexpr int kDoublings = 16;
  for (int i = 0; i < kDoublings; ++i)
    body += "  z" + std::to_string(i + 1) + " = add(z" + std::to_string(i) + ", z" +
            std::to_string(i) + ")\n";
  body += "  total = reduce_sum(z" + std::to_string(kDoublings) + R"()
  scale = square(total)
  s = reduce_sum(x)
  loss = mul(s, scale)
  output loss
)";
  const Graph graph = Parse(body);
  const Result<Graph> half = Halves(graph);
  ASSERT_TRUE(half.ok()) << half.status().message();
  EXPECT_LE(half->nodes().size(), 2 * graph.nodes().size());
}

constexpr char kNorm[] = R"(
  x = input f32[4,3,5]
  scale = parameter f32[3] init=constant(1)
  mean = state f32[3] init=zeros
  y, y.mean, y.var = batch_norm(x, scale, scale)
  next = add(mean, y.mean)
)";

TEST(BatchAxis, SlicesInStepKnowOfHowManyTheyAreOne) {
  const std::string body =
      std::string(kNorm) + "  loss = reduce_mean(y)\n  output loss\n  update mean = next\n";
  const Result<Graph> half = Halves(Parse(body), SliceOrder::kInStep);
  ASSERT_TRUE(half.ok()) << half.status().message();
  const Node& norm = *half->producer(half->FindValue("y"));
  EXPECT_EQ(norm.attrs.integer("slices"), 2);
  EXPECT_EQ(half->type(norm.outputs[0]).dims, (Dims{2, 3, 5}));
  EXPECT_EQ(half->type(norm.outputs[1]).dims, (Dims{3}));
  EXPECT_EQ(half->updates().size(), 1u);
  EXPECT_THAT(Halves(Parse(body)).status().message(),
              testing::HasSubstr("batch_norm 'y' (line 6) couples its samples"));
}

TEST(BatchAxis, SlicesInStepCoupleOnlyWhatTheOperatorSays) {
  const auto refusal = [](const std::string& body) {
    return Halves(Parse(std::string(kNorm) + body), SliceOrder::kInStep).status().message();
  };
  EXPECT_THAT(refusal("  s = softmax(y, axis=0)\n  loss = reduce_mean(s)\n  output loss\n"),
              testing::HasSubstr("softmax 's' (line 8) couples its samples"));
  EXPECT_THAT(refusal("  first = reduce_mean(y, axes=[0,2])\n  now = add(first, mean)\n"
                      "  loss = reduce_mean(y)\n  output loss\n  update mean = now\n"),
              testing::HasSubstr("each step changes 'mean'"));
}

// A chain is as long as its file makes it.
TEST(BatchAxis, AChainOfTheWholeBatchMayBeLong) {
  std::string body = "  x = input f32[4,3]\n  n = input f32[4]\n  z0 = neg(n)\n";
  constexpr int kSteps = 60000;
  for (int i = 0; i < kSteps; ++i)
    body += "  z" + std::to_string(i + 1) + " = neg(z" + std::to_string(i) + ")\n";
  body += "  total = reduce_sum(z" + std::to_string(kSteps) + R"()
  scale = square(total)
  s = reduce_sum(x)
  loss = mul(s, scale)
  output loss
)";
  const Result<Graph> half = Halves(Parse(body));
  EXPECT_TRUE(half.ok()) << half.status().message();
}

}  // namespace
}  // namespace ridge
