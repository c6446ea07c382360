// Which values are stored as bf16, and what becomes of the nodes around them.
#include "ridge/lower/reduced_storage.h"

#include <gtest/gtest.h>

#include "ridge/graph/text.h"
#include "ridge/graph/verify.h"
#include "ridge/lower/test_kernels.h"

namespace ridge {
namespace {

// Runs every node; one operator well in f32 only.
class Kernels : public RowMajorKernels {
 public:
  explicit Kernels(std::string f32_only = "") : f32_only_(std::move(f32_only)) {}

  KernelCandidates Candidates(const OpDef& op, const OpCall& call,
                              std::span<const LayoutId>) override {
    KernelChoice choice;
    bool narrow = false;
    for (const TensorType& type : call.inputs) narrow = narrow || type.dtype == DType::kBF16;
    if (op.name == f32_only_ && narrow) choice.efficiency = 1e-3;
    return {{choice}, {}};
  }

 private:
  const std::string f32_only_;
};

Graph Parse(const std::string& text) {
  Result<Graph> graph = ParseGraph(text, "g.ridge");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *std::move(graph);
}

std::string Narrow(const std::string& text, Kernels kernels = Kernels()) {
  Result<Graph> narrow = AutocastActivations(Parse(text), DType::kBF16, kernels);
  EXPECT_TRUE(narrow.ok()) << narrow.status().message();
  EXPECT_TRUE(CheckGraph(*narrow).ok()) << CheckGraph(*narrow).message();
  return PrintGraph(*narrow);
}

TEST(AutocastActivations, StoresWhatProductsAndPointwiseNodesExchange) {
  EXPECT_EQ(Narrow(R"(graph g
  x = input bf16[128,256]
  w = input bf16[256,256]
  bias = parameter f32[256] init=normal(1.0)
  y = matmul(x, w, bias, out_dtype="f32")
  r = relu(y)
  r.bf16 = cast(r, to="bf16")
  z = matmul(r.bf16, w, out_dtype="f32")
  output z
)"),
            R"(graph g
  x = input bf16[128,256]
  w = input bf16[256,256]
  bias = parameter f32[256] init=normal(1.0)
  y = matmul(x, w, bias, out_dtype="bf16")
  r = fused(y, expr="t0=cast(i0,to=\"f32\");t1=relu(t0);t2=cast(t1,to=\"bf16\");o0=t2")
  z = matmul(r, w, out_dtype="f32")
  output z
)");
}

TEST(AutocastActivations, LeavesSmallValuesVariablesAndTheLossAsTheyAre) {
  for (const char* text : {
           "graph g\n  x = input bf16[8,8]\n  y = matmul(x, x, out_dtype=\"f32\")\n  r = relu(y)\n"
           "  r.bf16 = cast(r, to=\"bf16\")\n  z = matmul(r.bf16, x, out_dtype=\"f32\")\n"
           "  output z\n",
           "graph g\n  w = parameter f32[256,256] init=normal(1.0)\n  x = input bf16[256,256]\n"
           "  dw = matmul(x, x, out_dtype=\"f32\")\n  s = add(w, dw)\n  update w = s\n",
           "graph g\n  x = input bf16[256,256]\n  y = matmul(x, x, out_dtype=\"f32\")\n"
           "  q = square(y)\n  loss = reduce_mean(q)\n  output loss\n",
       }) {
    EXPECT_EQ(Narrow(text), PrintGraph(Parse(text)));
  }
}

constexpr const char* kNorm = R"(graph g
  x = input bf16[4,16,32,32]
  w = input bf16[16,16,3,3]
  s = input f32[16]
  y = conv(x, w, padding=[1,1,1,1], out_dtype="f32")
  n, mean, var = batch_norm(y, s, s)
  r = relu(n)
  r.bf16 = cast(r, to="bf16")
  z = conv(r.bf16, w, padding=[1,1,1,1], out_dtype="f32")
  output z
)";

TEST(AutocastActivations, TakesInputAndResultOfANormTogether) {
  EXPECT_NE(Narrow(kNorm).find("y = conv(x, w, out_dtype=\"bf16\", padding=[1,1,1,1])"),
            std::string::npos)
      << Narrow(kNorm);
  const std::string without = Narrow(kNorm, Kernels("batch_norm"));
  EXPECT_NE(without.find("y = conv(x, w, out_dtype=\"f32\", padding=[1,1,1,1])"), std::string::npos)
      << without;
  EXPECT_NE(without.find("r = fused(n, expr=\"t0=relu(i0);t1=cast(t0,to=\\\"bf16\\\");o0=t1\")"),
            std::string::npos)
      << without;
}

// A reader that needs f32 gets a cast of its own, where all others save more than it costs.
TEST(AutocastActivations, CastsInFrontOfAReaderThatNeedsF32) {
  const std::string text = Narrow(R"(graph g
  x = input bf16[128,256]
  w = input bf16[256,256]
  y = matmul(x, w, out_dtype="f32")
  a = relu(y)
  b = tanh(y)
  c = sigmoid(y)
  s = softmax(y)
  t = add(a, b)
  u = add(t, c)
  v = add(u, s)
  v.bf16 = cast(v, to="bf16")
  z = matmul(v.bf16, w, out_dtype="f32")
  output z
)");
  EXPECT_NE(text.find("y.f32 = cast(y, to=\"f32\")\n  s = softmax(y.f32)"), std::string::npos)
      << text;
}

// A fused node that gave a value both in f32 and in 16 bits gives it once.
// Rows that are added to a table are summed up there, like what a layer reads.
TEST(AutocastActivations, UpdatesAreF32UpToRowsThatAreScattered) {
  EXPECT_EQ(Narrow(R"(graph g
  x = input bf16[128,256]
  w = input bf16[256,256]
  rows = input i64[128]
  table = parameter f32[1000,256] init=normal(1.0)
  y = matmul(x, w, out_dtype="f32")
  r = relu(y)
  sum = scatter(table, rows, r, reduction="add")
  update table = sum
)"),
            R"(graph g
  x = input bf16[128,256]
  w = input bf16[256,256]
  rows = input i64[128]
  table = parameter f32[1000,256] init=normal(1.0)
  y = matmul(x, w, out_dtype="bf16")
  r = fused(y, expr="t0=cast(i0,to=\"f32\");t1=relu(t0);o0=t1")
  sum = scatter(table, rows, r, reduction="add")
  update table = sum
)");
}

TEST(AutocastActivations, MergesTwins) {
  EXPECT_EQ(Narrow(R"(graph g
  x = input bf16[128,256]
  w = input bf16[256,256]
  y = matmul(x, w, out_dtype="f32")
  r, n = fused(y, expr="t0=relu(i0);t1=cast(t0,to=\"bf16\");o0=t0;o1=t1")
  z = matmul(n, w, out_dtype="f32")
  g = mul(r, z)
  g.bf16 = cast(g, to="bf16")
  q = matmul(g.bf16, w, out_dtype="f32")
  output q
)"),
            R"(graph g
  x = input bf16[128,256]
  w = input bf16[256,256]
  y = matmul(x, w, out_dtype="bf16")
  r = fused(y, expr="t0=cast(i0,to=\"f32\");t1=relu(t0);t2=cast(t1,to=\"bf16\");o0=t2")
  z = matmul(r, w, out_dtype="bf16")
  g = fused(r, z, expr="t0=cast(i0,to=\"f32\");t1=cast(i1,to=\"f32\");t2=mul(t0,t1);t3=cast(t2,to=\"bf16\");o0=t3")
  q = matmul(g, w, out_dtype="f32")
  output q
)");
}

// Whose convolutions write the type of their operands alone.
class NarrowRules : public TestRules {
 public:
  bool GivesF32Sums(const OpDef& op) const override { return op.cost_class != CostClass::kConv; }
};

std::string NarrowSums(const std::string& text, const RewriteRules& rules = NarrowRules()) {
  Result<Graph> narrow = NarrowConvolutions(Parse(text), DType::kBF16, rules);
  EXPECT_TRUE(narrow.ok()) << narrow.status().message();
  EXPECT_TRUE(CheckGraph(*narrow).ok()) << CheckGraph(*narrow).message();
  return PrintGraph(*narrow);
}

TEST(NarrowConvolutions, CastsInTheReadersThatArePointwise) {
  EXPECT_EQ(NarrowSums(R"(graph g
  x = input bf16[4,16,8,8]
  w = input bf16[16,16,1,1]
  y = conv(x, w, out_dtype="f32")
  r = relu(y)
  m = reduce_mean(y)
  output r
  output m
)"),
            R"(graph g
  x = input bf16[4,16,8,8]
  w = input bf16[16,16,1,1]
  y = conv(x, w, out_dtype="bf16")
  y.f32 = cast(y, to="f32")
  r = fused(y, expr="t0=cast(i0,to=\"f32\");t1=relu(t0);o0=t1")
  m = reduce_mean(y.f32, out_dtype="f32")
  output r
  output m
)");
}

TEST(NarrowConvolutions, WhatLeavesTheGraphKeepsItsType) {
  EXPECT_EQ(NarrowSums(R"(graph g
  w = parameter f32[16,16,1,1] init=normal(1.0)
  x = input bf16[4,16,8,8]
  dy = input bf16[4,16,8,8]
  dw, db = conv_grad_weight(x, dy, bias=1, out_dtype="f32", weight_dims=[16,16,1,1])
  output db
  update w = dw
)"),
            R"(graph g
  w = parameter f32[16,16,1,1] init=normal(1.0)
  x = input bf16[4,16,8,8]
  dy = input bf16[4,16,8,8]
  dw, db = conv_grad_weight(x, dy, bias=1, out_dtype="bf16", weight_dims=[16,16,1,1])
  dw.f32 = cast(dw, to="f32")
  db.f32 = cast(db, to="f32")
  output db = db.f32
  update w = dw.f32
)");
}

TEST(NarrowConvolutions, LeavesProductsF32AndDevicesThatWriteF32) {
  const std::string product =
      "graph g\n  x = input bf16[8,8]\n  y = matmul(x, x, out_dtype=\"f32\")\n  output y\n";
  EXPECT_EQ(NarrowSums(product), product);
  const std::string wide =
      "graph g\n  x = input f32[1,8,4,4]\n  w = input f32[8,8,1,1]\n  y = conv(x, w)\n"
      "  output y\n";
  EXPECT_EQ(NarrowSums(wide), PrintGraph(Parse(wide)));
  const std::string sums =
      "graph g\n  x = input bf16[1,8,4,4]\n  w = input bf16[8,8,1,1]\n"
      "  y = conv(x, w, out_dtype=\"f32\")\n  output y\n";
  EXPECT_EQ(NarrowSums(sums, TestRules()), PrintGraph(Parse(sums)));
}

}  // namespace
}  // namespace ridge
