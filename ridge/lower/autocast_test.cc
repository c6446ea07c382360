// Products of bf16: what is cast, once each, and how far the numbers move.
#include "ridge/lower/autocast.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ridge/graph/interpret.h"
#include "ridge/graph/text.h"
#include "ridge/graph/verify.h"
#include "ridge/lower/pipeline.h"
#include "ridge/lower/test_kernels.h"

namespace ridge {
namespace {

Graph Parse(const std::string& text) {
  Result<Graph> graph = ParseGraph(text, "g.ridge");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *std::move(graph);
}

// Runs every node as well in f32 as in bf16, but for one operator.
class Kernels : public RowMajorKernels {
 public:
  explicit Kernels(std::string fast_in_f32 = "") : fast_in_f32_(std::move(fast_in_f32)) {}

  KernelCandidates Candidates(const OpDef& op, const OpCall& call,
                              std::span<const LayoutId>) override {
    KernelChoice choice;
    if (op.name == fast_in_f32_ && call.inputs[0].dtype == DType::kF32) choice.efficiency = 3;
    return {{choice}, {}};
  }

 private:
  const std::string fast_in_f32_;
};

Graph InBf16(const Graph& graph, Kernels kernels = Kernels()) {
  Result<Graph> low = AutocastMatmuls(graph, DType::kBF16, kernels);
  EXPECT_TRUE(low.ok()) << low.status().message();
  EXPECT_TRUE(CheckGraph(*low).ok()) << CheckGraph(*low).message();
  return *std::move(low);
}

constexpr const char* kTwoProducts = R"(graph g
  x = input f32[96,128]
  w = parameter f32[128,128] init=normal(1.0)
  bias = parameter f32[128] init=normal(1.0)
  h = matmul(x, w, bias)
  r = relu(h)
  y = matmul(r, w)
  output y
)";

TEST(ProductsInBf16, CastEachOperandOnceAndGiveF32) {
  const Graph low = InBf16(Parse(kTwoProducts));
  EXPECT_EQ(PrintGraph(low), R"(graph g
  x = input f32[96,128]
  w = parameter f32[128,128] init=normal(1.0)
  bias = parameter f32[128] init=normal(1.0)
  x.bf16 = cast(x, to="bf16")
  w.bf16 = cast(w, to="bf16")
  h = matmul(x.bf16, w.bf16, bias, out_dtype="f32")
  r = relu(h)
  r.bf16 = cast(r, to="bf16")
  y = matmul(r.bf16, w.bf16, out_dtype="f32")
  output y
)");
}

// Of a device without products of f16.
class WithoutF16 : public Kernels {
 public:
  using Kernels::Kernels;
  bool Multiplies(DType operands) const override { return operands != DType::kF16; }
};

TEST(ProductsInF16, AreThoseOfRoundedF32WhereTheDeviceHasNone) {
  WithoutF16 kernels;
  const Graph graph = Parse(kTwoProducts);
  const Result<Graph> rounded = AutocastMatmuls(graph, DType::kF16, kernels);
  ASSERT_TRUE(rounded.ok()) << rounded.status().message();
  EXPECT_EQ(PrintGraph(*rounded), R"(graph g
  x = input f32[96,128]
  w = parameter f32[128,128] init=normal(1.0)
  bias = parameter f32[128] init=normal(1.0)
  x.f16 = cast(x, to="f16")
  x.f16.f32 = cast(x.f16, to="f32")
  w.f16 = cast(w, to="f16")
  w.f16.f32 = cast(w.f16, to="f32")
  h = matmul(x.f16.f32, w.f16.f32, bias)
  r = relu(h)
  r.f16 = cast(r, to="f16")
  r.f16.f32 = cast(r.f16, to="f32")
  y = matmul(r.f16.f32, w.f16.f32)
  output y
)");
  Kernels narrow;
  const Result<Graph> low = AutocastMatmuls(graph, DType::kF16, narrow);
  ASSERT_TRUE(low.ok()) << low.status().message();
  Tensor x({DType::kF32, {96, 128}});
  for (int64_t i = 0; i < x.elements(); ++i)
    StoreFromDouble(DType::kF32, x.mutable_data(), i, std::sin(0.1 * static_cast<double>(i)));
  const auto a = EvaluateGraph(*rounded, {{"x", x}}), b = EvaluateGraph(*low, {{"x", x}});
  ASSERT_TRUE(a.ok() && b.ok());
  const Tensor& ya = (*a)[static_cast<size_t>(rounded->outputs()[0].value)];
  const Tensor& yb = (*b)[static_cast<size_t>(low->outputs()[0].value)];
  for (int64_t i = 0; i < ya.elements(); ++i) ASSERT_EQ(ya.at(i), yb.at(i)) << i;
}

// f32 has no algorithm there that 16 bits would lose.
TEST(ProductsInF16, AreConvolutionsTooWhereTheDeviceHasNone) {
  WithoutF16 kernels("conv");
  const Result<Graph> low =
      AutocastMatmuls(Parse("graph g\n  x = input f32[2,64,8,8]\n  w = parameter f32[64,64,3,3]\n"
                            "  y = conv(x, w)\n  output y\n"),
                      DType::kF16, kernels);
  ASSERT_TRUE(low.ok()) << low.status().message();
  EXPECT_NE(low->FindValue("w.f16.f32"), kNoValue);
}

// Rounding both operands once is all that happens: the sums are not rounded to bf16.
TEST(ProductsInBf16, AddUpInF32) {
  const Graph low =
      InBf16(Parse("graph g\n  a = input f32[64,1024]\n  b = input f32[1024,64]\n"
                   "  y = matmul(a, b)\n  output y\n"));
  Tensor a({DType::kF32, {64, 1024}}), b({DType::kF32, {1024, 64}});
  double sum = 0;  // of the first row by the first column; all others are 0
  for (int64_t i = 0; i < 1024; ++i) {
    const auto x = static_cast<float>(std::sin(0.1 * static_cast<double>(i))), z = 1.0f + x;
    StoreFromDouble(DType::kF32, a.mutable_data(), i, x);
    StoreFromDouble(DType::kF32, b.mutable_data(), i * 64, z);
    sum += static_cast<double>(BF16ToFloat(FloatToBF16(x))) * BF16ToFloat(FloatToBF16(z));
  }
  const auto values = EvaluateGraph(low, {{"a", a}, {"b", b}});
  ASSERT_TRUE(values.ok()) << values.status().message();
  const double y = (*values)[static_cast<size_t>(low.outputs()[0].value)].at(0);
  EXPECT_NEAR(y, sum, 1e-4);
  EXPECT_NE(y, BF16ToFloat(FloatToBF16(static_cast<float>(sum))));
}

TEST(ProductsInBf16, LeaveOtherTypesSmallProductsAndEverythingElseAsTheyAre) {
  for (const char* text :
       {"graph g\n  x = input f64[128,128]\n  y = matmul(x, x)\n  output y\n",
        "graph g\n  x = input i32[128,128]\n  y = matmul(x, x)\n  output y\n",
        "graph g\n  x = input f32[64,5000]\n  w = input f32[5000,10]\n  y = matmul(x, w)\n"
        "  output y\n",
        "graph g\n  x = input f32[2,64,9,9]\n  w = input f32[64,1,3,3]\n"
        "  y = conv(x, w, groups=64)\n  output y\n",
        "graph g\n  x = input f32[2,2]\n  y = relu(x)\n  output y\n"}) {
    const Graph graph = Parse(text);
    EXPECT_EQ(PrintGraph(InBf16(graph)), PrintGraph(graph));
  }
}

// Three times the rate of f32 beats twice; where the gradient has the plain rate, both read bf16.
TEST(ProductsInBf16, LeaveConvolutionsThatAreFasterInF32) {
  const std::string forward =
      "graph g\n  x = input f32[2,128,20,20]\n  w = input f32[128,128,3,3]\n"
      "  y = conv(x, w, padding=[1,1,1,1])\n";
  const std::string weight =
      "  dw = conv_grad_weight(x, y, padding=[1,1,1,1], weight_dims=[128,128,3,3])\n";
  const Graph one = Parse(forward + "  output y\n");
  const Graph two = Parse(forward + weight + "  output dw\n");
  EXPECT_NE(PrintGraph(InBf16(one)), PrintGraph(one));
  EXPECT_EQ(PrintGraph(InBf16(one, Kernels("conv"))), PrintGraph(one));
  EXPECT_NE(PrintGraph(InBf16(two, Kernels("conv"))), PrintGraph(two));
}

// What a person reads of a fused graph: the cast is a step of the node that writes the operand.
TEST(ProductsInBf16, LetTheCastRideAlongWhenFused) {
  const Graph low =
      InBf16(Parse("graph g\n  x = input f32[96,128]\n  w = input f32[128,128]\n"
                   "  s = sigmoid(x)\n  r = mul(s, x)\n  y = matmul(r, w)\n"
                   "  output y\n"));
  const Result<Graph> fused = RunPasses(low, {{"fuse"}}, UnlimitedRules());
  ASSERT_TRUE(fused.ok()) << fused.status().message();
  int casts = 0;
  for (const Node& node : fused->nodes()) casts += node.op->name == "cast" ? 1 : 0;
  EXPECT_EQ(casts, 1) << PrintGraph(*fused);  // of w
}

}  // namespace
}  // namespace ridge
