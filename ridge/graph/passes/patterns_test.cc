// A recognized pattern gives the numbers of the nodes it replaces, in f64 and f32.
#include <gtest/gtest.h>

#include <cmath>

#include "ridge/graph/interpret.h"
#include "ridge/graph/passes/passes.h"
#include "ridge/graph/text.h"

namespace ridge {
namespace {

Tensor Output(const Graph& graph, const Tensor& x) {
  const auto values = EvaluateGraph(graph, {{"x", x}});
  EXPECT_TRUE(values.ok()) << values.status().message();
  return (*values)[static_cast<size_t>(graph.outputs()[0].value)];
}

// `body` makes y from x, t[3,5], with constants of dtype t; becomes the one node `op`.
void ExpectSame(const std::string& t, const std::string& op, std::string body) {
  for (size_t at; (at = body.find('$')) != std::string::npos;) body.replace(at, 1, t);
  const std::string text = "graph g\n  x = input " + t + "[3,5]\n" + body + "  output y\n";
  const Result<Graph> before = ParseGraph(text, "g.ridge");
  ASSERT_TRUE(before.ok()) << before.status().message();
  const Result<Graph> after = RecognizePatterns(*before);
  ASSERT_TRUE(after.ok()) << after.status().message();
  ASSERT_EQ(after->nodes().size(), 1u) << PrintGraph(*after);
  EXPECT_EQ(after->nodes()[0].op->name, op);
  Tensor x({t == "f64" ? DType::kF64 : DType::kF32, {3, 5}});
  for (int64_t i = 0; i < 15; ++i) {
    StoreFromDouble(x.type().dtype, x.mutable_data(), i, std::sin(3.0 * static_cast<double>(i)));
  }
  const Tensor want = Output(*before, x), got = Output(*after, x);
  for (int64_t i = 0; i < 15; ++i) EXPECT_NEAR(got.at(i), want.at(i), 1e-6) << op << " " << i;
}

TEST(Patterns, GiveTheNumbersOfTheNodesTheyReplace) {
  for (const char* t : {"f64", "f32"}) {
    ExpectSame(t, "silu", "  s = sigmoid(x)\n  y = mul(x, s)\n");
    ExpectSame(t, "gelu",
               "  r = constant $[] 0.7071067811865476\n  one = constant $[] 1\n"
               "  half = constant $[] 0.5\n  z = mul(x, r)\n  e = erf(z)\n  s = add(e, one)\n"
               "  h = mul(half, x)\n  y = mul(h, s)\n");
    ExpectSame(t, "gelu",
               "  c = constant $[] 0.044715\n  k = constant $[] 0.7978845608028654\n"
               "  one = constant $[] 1\n  half = constant $[] 0.5\n  three = constant $[] 3\n"
               "  p = pow(x, three)\n  q = mul(p, c)\n  s = add(x, q)\n  u = mul(s, k)\n"
               "  e = tanh(u)\n  o = add(e, one)\n  w = mul(x, o)\n  y = mul(w, half)\n");
    ExpectSame(t, "layer_norm",
               "  eps = constant $[] 0.01\n  m = reduce_mean(x, axes=[1], keep_dims=1)\n"
               "  d = sub(x, m)\n  q = mul(d, d)\n  v = reduce_mean(q, axes=[1], keep_dims=1)\n"
               "  a = add(v, eps)\n  r = sqrt(a)\n  y = div(d, r)\n");
  }
}

}  // namespace
}  // namespace ridge
