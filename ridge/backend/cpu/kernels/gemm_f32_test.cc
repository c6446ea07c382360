#include "ridge/backend/cpu/kernels/gemm_f32.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "hwy/targets.h"

namespace ridge::cpu {
namespace {

struct Size {
  int64_t m, n, k;
};

std::vector<float> RandomNumbers(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& x : numbers) x = uniform(generator);
  return numbers;
}

// Numbers behind the rows and the end of c: a kernel that writes there is found.
constexpr int64_t kGap = 3;
constexpr float kGuard = 12345;

enum class Order { kRows, kColumns, kApart };

MatrixF32 View(const std::vector<float>& data, int64_t rows, int64_t columns, Order order) {
  if (order == Order::kRows) return {data.data(), columns, 1};
  if (order == Order::kColumns) return {data.data(), 1, rows};
  return {data.data(), 2 * columns, 2};
}

// One run for each instruction set that has a tile of its own and that this machine has.
class GemmF32Test : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    if ((hwy::SupportedTargets() & GetParam()) == 0)
      GTEST_SKIP() << "not on this machine: no such instructions";
    Use(GetParam());
  }
  void TearDown() override { Use(0); }

  static void Use(int64_t targets) {  // 0: what the machine has
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  // The product of random matrices against sums in double; the bound is that of sums in any order.
  static void Check(const Size& s, Order order_a, Order order_b, bool adds) {
    SCOPED_TRACE(testing::Message() << s.m << "x" << s.n << "x" << s.k << " orders "
                                    << static_cast<int>(order_a) << static_cast<int>(order_b));
    const auto a = RandomNumbers(2 * s.m * s.k, 1), b = RandomNumbers(2 * s.k * s.n, 2);
    const int64_t row = s.n + kGap;
    const auto extra = RandomNumbers(s.m * row, 3), bias = RandomNumbers(s.n, 4);
    std::vector<float> c(static_cast<size_t>(s.m * row), kGuard);
    const GemmF32 gemm{.m = s.m,
                       .n = s.n,
                       .k = s.k,
                       .a = View(a, s.m, s.k, order_a),
                       .b = View(b, s.k, s.n, order_b),
                       .c = c.data(),
                       .c_row = row,
                       .extra = adds ? extra.data() : nullptr,
                       .bias = adds ? bias.data() : nullptr,
                       .relu = adds};
    std::vector<float> scratch(static_cast<size_t>(GemmF32Scratch(s.n, s.k)) + 1, kGuard);
    RunGemmF32(gemm, scratch.data());
    EXPECT_EQ(scratch.back(), kGuard);
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < row; ++j) {
        const auto at = static_cast<size_t>(i * row + j);
        const double more =
            adds && j < s.n ? double{extra[at]} + double{bias[static_cast<size_t>(j)]} : 0;
        const double sum = j < s.n ? Exact(gemm, i, j) + more : double{kGuard};
        const double expected = adds ? std::max(sum, 0.0) : sum;
        ASSERT_NEAR(c[at], expected, 2e-7 * static_cast<double>(s.k + 8)) << i << ", " << j;
      }
    }
  }

  static double Exact(const GemmF32& g, int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t l = 0; l < g.k; ++l) {
      sum +=
          double{g.a.data[i * g.a.row + l * g.a.col]} * double{g.b.data[l * g.b.row + j * g.b.col]};
    }
    return sum;
  }
};

TEST_P(GemmF32Test, EveryHeightOfATileAndEveryWidth) {
  for (int64_t m = 1; m <= 30; ++m) Check({m, 40, 5}, Order::kColumns, Order::kRows, false);
  for (int64_t n = 1; n <= 70; ++n) Check({15, n, 3}, Order::kColumns, Order::kRows, n % 2 == 0);
}

TEST_P(GemmF32Test, EveryOrderOfTheOperands) {
  for (const Order a : {Order::kRows, Order::kColumns, Order::kApart}) {
    for (const Order b : {Order::kRows, Order::kColumns, Order::kApart}) {
      Check({33, 47, 29}, a, b, false);
      Check({31, 34, 300}, a, b, true);
    }
  }
}

TEST_P(GemmF32Test, ManyBlocks) {
  Check({20, 1000, 700}, Order::kColumns, Order::kRows, true);
  Check({61, 401, 513}, Order::kRows, Order::kColumns, false);
  Check({1, 1, 2000}, Order::kRows, Order::kRows, true);
}

// What a thread's share is must not change its elements.
TEST_P(GemmF32Test, ElementsDoNotDependOnTheShare) {
  const Size s{37, 500, 600};
  const auto a = RandomNumbers(s.m * s.k, 1), b = RandomNumbers(s.k * s.n, 2);
  std::vector<float> whole(static_cast<size_t>(s.m * s.n)), parts = whole;
  GemmF32 gemm{.m = s.m,
               .n = s.n,
               .k = s.k,
               .a = View(a, s.m, s.k, Order::kColumns),
               .b = View(b, s.k, s.n, Order::kRows),
               .c = whole.data(),
               .c_row = s.n};
  std::vector<float> scratch(static_cast<size_t>(GemmF32Scratch(s.n, s.k)));
  RunGemmF32(gemm, scratch.data());
  for (const int64_t begin : {0, 96}) {
    GemmF32 part = gemm;
    part.n = begin == 0 ? 96 : s.n - 96;
    part.b.data += begin;
    part.c = parts.data() + begin;
    RunGemmF32(part, scratch.data());
  }
  EXPECT_EQ(whole, parts);
}

TEST_P(GemmF32Test, ReluKeepsNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a = {1, nan}, b = {-2};
  std::vector<float> c(2), scratch(static_cast<size_t>(GemmF32Scratch(1, 1)));
  RunGemmF32({.m = 2,
              .n = 1,
              .k = 1,
              .a = {a.data(), 1, 1},
              .b = {b.data(), 1, 1},
              .c = c.data(),
              .c_row = 1,
              .relu = true},
             scratch.data());
  EXPECT_EQ(c[0], 0);
  EXPECT_TRUE(std::isnan(c[1]));
}

INSTANTIATE_TEST_SUITE_P(Targets, GemmF32Test,
                         testing::Values(int64_t{HWY_SSSE3}, int64_t{HWY_AVX2}, int64_t{HWY_AVX3}));

}  // namespace
}  // namespace ridge::cpu
