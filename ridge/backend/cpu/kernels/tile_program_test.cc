// The error bounds of the elementary functions, on every instruction set of this machine.
#include "ridge/backend/cpu/kernels/tile_program.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "hwy/targets.h"
#include "ridge/core/dtype.h"
#include "ridge/graph/op_def.h"

namespace ridge::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const double kRootHalf = std::sqrt(0.5);

double NormalCdf(double x) { return 0.5 * std::erfc(-x * kRootHalf); }
double Gelu(double x) { return x * NormalCdf(x); }
double GeluSlope(double x) {
  return NormalCdf(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0));
}
double GeluTanh(double x) {
  const double u = std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
  return x / (1 + std::exp(-2 * u));
}
double GeluTanhSlope(double x) {
  const double scale = std::sqrt(2 / std::acos(-1.0));
  const double s = 1 / (1 + std::exp(-2 * scale * (x + 0.044715 * x * x * x)));
  return s + x * s * (1 - s) * 2 * scale * (1 + 3 * 0.044715 * x * x);
}
double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Silu(double x) { return x * Sigmoid(x); }

// op(x), with 1 for the incoming gradient of an op that has one.
std::vector<float> Apply(TileOp op, std::vector<float> x, bool is_grad = false) {
  std::vector<float> ones(x.size(), 1.0F), y(x.size());
  TileStep step{op, 2, 0, 0, 0};
  if (is_grad) step.a = 1;
  float* registers[] = {x.data(), ones.data(), y.data()};
  RunTile({&step, 1}, registers, static_cast<int64_t>(x.size()));
  return y;
}

// From low to high in even steps, a number of them that no vector divides.
std::vector<float> Points(double low, double high) {
  constexpr int kCount = 100003;
  std::vector<float> x(kCount);
  for (int i = 0; i < kCount; ++i)
    x[static_cast<size_t>(i)] = static_cast<float>(low + (high - low) * i / (kCount - 1));
  return x;
}

// One run for each instruction set that is compiled in and that this machine has.
class TileFunctions : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    if ((hwy::SupportedTargets() & GetParam()) == 0)
      GTEST_SKIP() << "not on this machine: no such instructions";
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  // The largest |y - f(x)| / (absolute + relative |f(x)|).
  static double Worst(const std::vector<float>& x, const std::vector<float>& y, double (*f)(double),
                      double relative, double absolute) {
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double right = f(x[i]);
      const double bound = absolute + relative * std::abs(right);
      worst = std::max(worst, std::abs(y[i] - right) / bound);
    }
    return worst;
  }
};

constexpr double kUlp = 1.2e-7;
constexpr double kSmallest = 1.2e-38;  // results below it are 0

TEST_P(TileFunctions, ExponentialIsExactToTwoUlp) {
  const auto x = Points(-104, 88.7228);
  EXPECT_LE(Worst(x, Apply(TileOp::kExp, x), std::exp, kUlp, kSmallest), 1.5);
}

TEST_P(TileFunctions, ExponentialKeepsTheEdges) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto y =
      Apply(TileOp::kExp, {-kInfinity, -200, -0.0F, 0, 1e-40F, 88.72283F, 88.73F, kInfinity, nan});
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], 0);
  EXPECT_EQ(y[2], 1);
  EXPECT_EQ(y[3], 1);
  EXPECT_EQ(y[4], 1);
  EXPECT_NEAR(y[5] / 3.40279e38, 1, 1e-5);
  EXPECT_EQ(y[6], kInfinity);
  EXPECT_EQ(y[7], kInfinity);
  EXPECT_TRUE(std::isnan(y[8]));
}

// Every exponent and sign, with the bits that are rounded away around their ties.
std::vector<float> AroundEveryF16() {
  std::vector<float> x;
  for (uint32_t high = 0; high < 1U << 19; ++high) {
    for (const uint32_t low : {0x0000U, 0x0001U, 0x0FFFU, 0x1000U, 0x1001U, 0x1FFFU})
      x.push_back(std::bit_cast<float>(high << 13 | low));
  }
  return x;
}

TEST_P(TileFunctions, RoundsToF16AsTheConversionDoes) {
  const std::vector<float> x = AroundEveryF16();
  const std::vector<float> y = Apply(TileOp::kRoundF16, x);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(F16ToFloat(FloatToF16(x[i]))))
        << x[i];
  }
}

TEST_P(TileFunctions, StoresF16AsTheConversionDoes) {
  const std::vector<float> x = AroundEveryF16();
  std::vector<uint16_t> y(x.size());
  const int64_t done = StoreVectors(DType::kF16, x.data(), y.data(), std::ssize(x));
  ASSERT_EQ(done, std::ssize(x));
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], FloatToF16(x[i])) << x[i];
}

TEST_P(TileFunctions, LoadsEveryF16AsTheConversionDoes) {
  std::vector<uint16_t> x(1 << 16);
  std::iota(x.begin(), x.end(), 0);
  std::vector<float> y(x.size());
  ASSERT_EQ(LoadVectors(DType::kF16, x.data(), y.data(), std::ssize(x)), std::ssize(x));
  for (size_t i = 0; i < x.size(); ++i) {
    const float right = F16ToFloat(x[i]);
    const bool same = std::bit_cast<uint32_t>(y[i]) == std::bit_cast<uint32_t>(right);
    ASSERT_TRUE(same || (std::isnan(y[i]) && std::isnan(right))) << i;
  }
}

// What the square of x loses in rounding grows with x: 5 ulp at -3, 16 at -8.
TEST_P(TileFunctions, GeluIsExactBesideItsTail) {
  const auto near = Points(-3, 100), tail = Points(-13, -3), beyond = Points(-1000, -13.3);
  EXPECT_LE(Worst(near, Apply(TileOp::kGelu, near), Gelu, 5 * kUlp, 1e-30), 1);
  EXPECT_LE(Worst(tail, Apply(TileOp::kGelu, tail), Gelu, 60 * kUlp, 1e-37), 1);
  for (const float y : Apply(TileOp::kGelu, beyond)) ASSERT_LE(std::abs(y), kSmallest);
}

TEST_P(TileFunctions, SlopeOfGeluIsExactToThreeUlpOfOne) {
  const auto x = Points(-30, 30);
  EXPECT_LE(Worst(x, Apply(TileOp::kGeluGrad, x, /*is_grad=*/true), GeluSlope, 0, 3 * kUlp), 1);
}

TEST_P(TileFunctions, GeluByTanhIsExactBesideItsTail) {
  const auto near = Points(-2, 50), tail = Points(-8, -2), all = Points(-30, 30);
  EXPECT_LE(Worst(near, Apply(TileOp::kGeluTanh, near), GeluTanh, 6 * kUlp, 1e-30), 1);
  EXPECT_LE(Worst(tail, Apply(TileOp::kGeluTanh, tail), GeluTanh, 90 * kUlp, 1e-37), 1);
  const auto slopes = Apply(TileOp::kGeluTanhGrad, all, /*is_grad=*/true);
  EXPECT_LE(Worst(all, slopes, GeluTanhSlope, 0, 5 * kUlp), 1);
  for (const float y : Apply(TileOp::kGeluTanh, Points(-3e38, -12))) ASSERT_LE(std::abs(y), 1e-30F);
}

TEST_P(TileFunctions, GeluKeepsLargeNumbersAndNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto y = Apply(TileOp::kGelu, {3e38F, kInfinity, -3e38F, nan, 1e-40F, 0});
  EXPECT_EQ(y[0], 3e38F);
  EXPECT_EQ(y[1], kInfinity);
  EXPECT_EQ(y[2], 0);
  EXPECT_TRUE(std::isnan(y[3]));
  EXPECT_NEAR(y[4], 0, 1e-40);
  EXPECT_EQ(y[5], 0);
}

TEST_P(TileFunctions, SigmoidTanhAndSiluAreExactToFourUlp) {
  const auto x = Points(-80, 80), small = Points(-3, 3);
  EXPECT_LE(Worst(x, Apply(TileOp::kSigmoid, x), Sigmoid, 4 * kUlp, kSmallest), 1);
  EXPECT_LE(Worst(x, Apply(TileOp::kSilu, x), Silu, 4 * kUlp, kSmallest), 1);
  EXPECT_LE(Worst(x, Apply(TileOp::kTanh, x), std::tanh, 4 * kUlp, 0), 1);
  EXPECT_LE(Worst(small, Apply(TileOp::kTanh, small), std::tanh, 4 * kUlp, 1e-30), 1);
}

TEST(TileSteps, NameOperators) {
  constexpr const char* kNames[] = {
#define RIDGE_TILE_STEP(Name, op, ...) op,
#include "ridge/backend/cpu/kernels/tile_steps.def"
  };
  for (const std::string name : kNames) {
    const OpDef* op = FindOp(name);
    EXPECT_TRUE(name.empty() || (op != nullptr && op->elementwise != nullptr)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, TileFunctions,
                         testing::Values(int64_t{HWY_SSSE3}, int64_t{HWY_AVX2}, int64_t{HWY_AVX3}));

}  // namespace
}  // namespace ridge::cpu
