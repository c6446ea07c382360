// Rewrites keep every number: the ends of integers, NaN, infinities and subnormal numbers.  Only
// the sign of a zero may change (x + 0 -> x).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "ridge/graph/builder.h"
#include "ridge/graph/interpret.h"
#include "ridge/graph/text.h"
#include "ridge/lower/pipeline.h"
#include "ridge/lower/test_rules.h"

namespace ridge {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<double> Extremes(DType dtype) {
  if (dtype == DType::kBool) return {0, 1};
  if (IsFloat(dtype)) return {0, -0.0, 1, -1.5, 3, NAN, kInf, -kInf, 6e-8, 1e300, -1e300, 0.5};
  const double end = std::ldexp(1.0, IntegerBits(dtype) - (IsSigned(dtype) ? 1 : 0));
  return {0,
          1,
          2,
          3,
          7,
          100,
          end - 1,
          end - 2,
          IsSigned(dtype) ? -end : 5.0,
          IsSigned(dtype) ? -1.0 : 6};
}

constexpr DType kDTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI8,
                             DType::kU8,  DType::kI16, DType::kI32,  DType::kU32, DType::kBool};

// Chains of what the rules look at: neutral constants, equal functions in a row, casts there and
// back, moves and sums over one element.
class RandomChain {
 public:
  explicit RandomChain(uint32_t seed) : random_(seed), b_("chain") {}

  Graph Build() {
    const DType dtype = kDTypes[Pick(std::size(kDTypes))];
    const auto count = static_cast<int64_t>(Extremes(dtype).size());
    Value x = b_.Input("x", {dtype, {1, count}});
    for (size_t i = 3 + Pick(8); i > 0; --i) {
      const Value next = Step(x);
      if (next.valid()) x = next;
      if (Pick(4) == 0) b_.Output("y" + std::to_string(i), x);
    }
    b_.Output("y", x);
    Result<Graph> graph = b_.Build();
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return *std::move(graph);
  }

 private:
  size_t Pick(size_t n) { return random_() % n; }

  Value Step(Value x) {
    const DType dtype = x.dtype();
    switch (Pick(6)) {
      case 0:
        return Cast(x, kDTypes[Pick(std::size(kDTypes))]);
      case 1:
        return Move(x);
      default:
        return dtype == DType::kBool ? Value() : Compute(x, dtype);
    }
  }

  Value Compute(Value x, DType dtype) {
    static constexpr const char* kUnary[] = {"neg", "neg", "abs", "sign", "relu", "floor", "round"};
    static constexpr const char* kBinary[] = {"mul", "add", "sub", "div", "pow"};
    if (Pick(2) == 0) {
      const size_t known = IsFloat(dtype) ? std::size(kUnary) : 4;
      const char* op = kUnary[Pick(known)];
      const bool is_unsigned = IsInteger(dtype) && !IsSigned(dtype);
      return is_unsigned ? Value() : Op(op, {x});
    }
    const size_t op = Pick(IsFloat(dtype) ? 5 : 4);
    const Value constant = b_.Scalar(dtype, op == 0 || op >= 3 ? 1 : 0);
    return Op(kBinary[op], {x, Pick(2) == 0 ? Expand(constant, x.dims()) : constant});
  }

  Value Move(Value x) {
    const Dims dims = x.dims();
    if (Pick(3) == 0) return Transpose(x, {1, 0});
    if (Pick(2) == 0) return Reshape(x, {dims[1], dims[0]});
    const DType dtype = x.dtype();
    if (dtype == DType::kBool) return {};
    static constexpr const char* kOps[] = {"reduce_sum", "reduce_max", "reduce_min", "reduce_prod"};
    return Op(kOps[Pick(4)], {x}, {{"axes", {dims[0] == 1 ? 0 : 1}}, {"keep_dims", 1}});
  }

  std::mt19937 random_;
  GraphBuilder b_;
};

std::vector<std::vector<double>> Outputs(const Graph& graph) {
  const ValueInfo& x = graph.value(graph.FindValue("x"));
  Tensor tensor(x.type);
  const std::vector<double> numbers = Extremes(x.type.dtype);
  ConvertFromDouble(x.type.dtype, numbers.data(), tensor.mutable_data(), tensor.elements());
  const Result<std::vector<Tensor>> values = EvaluateGraph(graph, {{"x", tensor}});
  EXPECT_TRUE(values.ok()) << values.status().message();
  std::vector<std::vector<double>> outputs;
  for (const GraphOutput& output : graph.outputs()) {
    outputs.emplace_back();
    for (int64_t i = 0; values.ok() && i < graph.type(output.value).elements(); ++i) {
      const double value = (*values)[static_cast<size_t>(output.value)].at(i);
      outputs.back().push_back(std::isnan(value) ? 12345.678 : value);
    }
  }
  return outputs;
}

TEST(ExactRules, KeepTheEndsOfIntegersAndSpecialNumbers) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    const Graph graph = RandomChain(seed).Build();
    const std::vector<std::vector<double>> want = Outputs(graph);
    for (const char* passes : {"only:algebra", "only:fold,algebra,cse,dce", ""}) {
      const Result<Graph> after = RunPasses(graph, *ParsePassSpec(passes), UnlimitedRules());
      ASSERT_TRUE(after.ok()) << after.status().message();
      ASSERT_EQ(Outputs(*after), want) << seed << "\n" << PrintGraph(graph) << PrintGraph(*after);
    }
  }
}

}  // namespace
}  // namespace ridge
