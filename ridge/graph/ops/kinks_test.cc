// Gradients at kinks and ties (docs/design/0018-kinks.md).  The expected numbers are those of
// PyTorch 2.15 on the CPU, in f32, for the function named at the row.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ridge/graph/autodiff.h"
#include "ridge/graph/interpret.h"

namespace ridge {
namespace {

using Doubles = std::vector<double>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Tensor MakeTensor(DType dtype, const Dims& dims, const Doubles& values) {
  Tensor tensor({dtype, dims});
  for (size_t i = 0; i < values.size(); ++i)
    StoreFromDouble(dtype, tensor.mutable_data(), static_cast<int64_t>(i), values[i]);
  return tensor;
}

// d(sum of output 0) / d(input `wrt`).
Doubles GradOf(const char* op, const std::vector<Tensor>& inputs, size_t wrt,
               const AttrMap& attrs) {
  GraphBuilder b("kinks");
  std::vector<Value> values;
  for (const Tensor& tensor : inputs) values.push_back(b.Constant(tensor));
  const Value y = OpOutputs(op, values, attrs)[0];
  const Value loss = Sum(y);
  const Result<std::vector<Value>> grads = AppendGradients(b, loss, {values[wrt]});
  if (!grads.ok()) ADD_FAILURE() << op << ": " << grads.status().message();
  const Result<std::vector<Tensor>> all = EvaluateGraph(b.graph(), {});
  if (!grads.ok() || !all.ok()) return {};
  const Tensor& dx = (*all)[static_cast<size_t>((*grads)[0].id)];
  Doubles numbers;
  for (int64_t i = 0; i < dx.elements(); ++i) numbers.push_back(dx.at(i));
  return numbers;
}

void ExpectNumbers(const Doubles& got, const Doubles& expected, double tolerance,
                   const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << what << " at " << i << ": " << got[i];
    } else if (std::isinf(expected[i]) || expected[i] == 0) {
      EXPECT_EQ(got[i], expected[i]) << what << " at " << i;
    } else {
      EXPECT_NEAR(got[i], expected[i], tolerance * std::abs(expected[i])) << what << " at " << i;
    }
  }
}

constexpr struct {
  DType dtype;
  double tolerance;  // two roundings of it
} kTypes[] = {{DType::kF64, 1e-14}, {DType::kF32, 1e-6}, {DType::kBF16, 1e-2}, {DType::kF16, 2e-3}};

struct UnaryRow {
  const char* torch;
  const char* op;
  AttrMap attrs;
  Doubles x, dx;
};

const std::vector<UnaryRow>& UnaryRows() {
  static const std::vector<UnaryRow> rows = {
      {"relu", "relu", {}, {-1, 0, 1}, {0, 0, 1}},
      {"relu6", "clip", {{"min", 0.0}, {"max", 6.0}}, {-1, 0, 3, 6, 7}, {0, 0, 1, 0, 0}},
      {"hardtanh", "clip", {{"min", -1.0}, {"max", 1.0}}, {-2, -1, 0, 1, 2}, {0, 0, 1, 0, 0}},
      {"clamp(min=0)", "clip", {{"min", 0.0}}, {-1, 0, 1, kNaN}, {0, 0, 1, 0}},
      {"clamp(max=1)", "clip", {{"max", 1.0}}, {0, 1, 2}, {1, 0, 0}},
      {"hardsigmoid",
       "hard_sigmoid",
       {{"alpha", 1.0 / 6}},
       {-4, -3, 0, 3, 4},
       {0, 0, 1.0 / 6, 0, 0}},
      {"hardswish", "hard_swish", {}, {-4, -3, 0, 3, 4}, {0, 0, 0.5, 1, 1}},
      {"leaky_relu", "leaky_relu", {{"alpha", 0.25}}, {-1, 0, 1}, {0.25, 0.25, 1}},
      {"elu(alpha=2)", "elu", {{"alpha", 2.0}}, {-1, 0, 1}, {2 * std::exp(-1.0), 2, 1}},
      {"abs", "abs", {}, {-1, 0, 1}, {-1, 0, 1}},
      {"sign", "sign", {}, {-1, 0, 1}, {0, 0, 0}},
      {"floor", "floor", {}, {-1, 0, 0.5}, {0, 0, 0}},
      {"ceil", "ceil", {}, {-1, 0, 0.5}, {0, 0, 0}},
      {"round", "round", {}, {-1, 0.5, 1.5}, {0, 0, 0}},
      {"sqrt", "sqrt", {}, {0, 4}, {kInf, 0.25}},
      {"rsqrt", "rsqrt", {}, {0, 4}, {-kInf, -0.0625}},
      {"log", "log", {}, {0, 1}, {kInf, 1}},
      {"reciprocal", "reciprocal", {}, {0, 1}, {-kInf, -1}},
      {"acos", "acos", {}, {1, 0}, {-kInf, -1}},
      {"asin", "asin", {}, {1, 0}, {kInf, 1}},
      {"prod", "reduce_prod", {}, {0, 2, 3}, {6, 0, 0}},
      {"prod", "reduce_prod", {}, {0, 0, 3}, {0, 0, 0}},
      {"amax", "reduce_max", {}, {1, 2, 2}, {0, 0.5, 0.5}},
      {"amin", "reduce_min", {}, {1, 1, 2}, {0.5, 0.5, 0}},
  };
  return rows;
}

TEST(Kinks, OfOneArrayAreThoseOfPyTorch) {
  for (const UnaryRow& row : UnaryRows()) {
    for (const auto& [dtype, tolerance] : kTypes) {
      const Tensor x = MakeTensor(dtype, {static_cast<int64_t>(row.x.size())}, row.x);
      ExpectNumbers(GradOf(row.op, {x}, 0, row.attrs), row.dx, tolerance,
                    std::string(row.torch) + " in " + DTypeName(dtype));
    }
  }
}

struct BinaryRow {
  const char* torch;
  const char* op;
  Doubles a, b, da, db;
};

TEST(Kinks, OfTwoArraysAreThoseOfPyTorch) {
  const std::vector<BinaryRow> rows = {
      {"maximum", "maximum", {1, 2, 3}, {2, 2, 2}, {0, 0.5, 1}, {1, 0.5, 0}},
      {"minimum", "minimum", {1, 2, 3}, {2, 2, 2}, {1, 0.5, 0}, {0, 0.5, 1}},
      {"div", "div", {0, 1, 1}, {0, 0, 2}, {kInf, kInf, 0.5}, {kNaN, -kInf, -0.25}},
      {"pow", "pow", {0, 0, 0, 2}, {0, 1, 2, 0}, {0, 1, 0, 0}, {0, 0, 0, std::log(2.0)}},
      {"pow", "pow", {0, 0, 4}, {0.5, -1, 0.5}, {kInf, -kInf, 0.25}, {0, -kInf, std::log(16.0)}},
  };
  for (const BinaryRow& row : rows) {
    for (const auto& [dtype, tolerance] : kTypes) {
      const Dims dims = {static_cast<int64_t>(row.a.size())};
      const std::vector<Tensor> inputs = {MakeTensor(dtype, dims, row.a),
                                          MakeTensor(dtype, dims, row.b)};
      const std::string what = std::string(row.torch) + " in " + DTypeName(dtype);
      ExpectNumbers(GradOf(row.op, inputs, 0, {}), row.da, tolerance, what + ", first");
      ExpectNumbers(GradOf(row.op, inputs, 1, {}), row.db, tolerance, what + ", second");
    }
  }
}

// max(dim) and min(dim): the first of equals.  A row of nothing but NaN has its first NaN.
TEST(Kinks, AlongOneAxisTheFirstOfEqualsTakesTheGradient) {
  const AttrMap attrs = {{"axes", {-1}}, {"ties", "first"}};
  for (const auto& [dtype, tolerance] : kTypes) {
    const Tensor x = MakeTensor(dtype, {3, 3}, {1, 2, 2, 3, 3, 3, 5, kNaN, kNaN});
    ExpectNumbers(GradOf("reduce_max", {x}, 0, attrs), {0, 1, 0, 1, 0, 0, 0, 1, 0}, 0, "max(dim)");
    ExpectNumbers(GradOf("reduce_min", {x}, 0, attrs), {1, 0, 0, 1, 0, 0, 0, 1, 0}, 0, "min(dim)");
  }
}

TEST(Kinks, FirstOfEqualsAlongTheAxisOfARowMajorArray) {
  const AttrMap attrs = {{"axes", {0}}, {"ties", "first"}};
  const Tensor x = MakeTensor(DType::kF64, {3, 2}, {1, 4, 2, 4, 2, 3});
  ExpectNumbers(GradOf("reduce_max", {x}, 0, attrs), {0, 1, 1, 0, 0, 0}, 0, "max(0)");
}

TEST(Kinks, OfAPoolTheFirstOfEqualsTakesTheGradient) {
  const AttrMap attrs = {{"kernel", {2, 2}}, {"stride", {2, 2}}};
  for (const auto& [dtype, tolerance] : kTypes) {
    const Tensor x = MakeTensor(dtype, {1, 1, 2, 4}, {1, 1, 3, 3, 1, 1, 3, 2});
    ExpectNumbers(GradOf("max_pool", {x}, 0, attrs), {1, 0, 1, 0, 0, 0, 0, 0}, 0, "max_pool2d");
  }
}

// bf16 has no 257 and f16 no 2049; 70,000 is infinity in f16.
TEST(Kinks, SharesOfManyTiesAddUpToTheGradient) {
  struct {
    DType dtype;
    int64_t count;
    double tolerance;
  } rows[] = {{DType::kBF16, 257, 1e-3}, {DType::kF16, 2049, 1e-4}, {DType::kF16, 70000, 1e-2}};
  for (const auto& row : rows) {
    const Tensor x = MakeTensor(row.dtype, {row.count}, Doubles(static_cast<size_t>(row.count), 2));
    for (const char* op : {"reduce_max", "reduce_min"}) {
      double sum = 0;
      for (double share : GradOf(op, {x}, 0, {})) sum += share;
      EXPECT_NEAR(sum, 1, row.tolerance) << op << " of " << row.count;
    }
  }
}

}  // namespace
}  // namespace ridge
