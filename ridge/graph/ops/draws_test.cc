// The moments of the operators that draw numbers, and that a split of the batch draws the same.
#include <gtest/gtest.h>

#include <cmath>

#include "ridge/graph/builder.h"
#include "ridge/graph/interpret.h"

namespace ridge {
namespace {

Tensor Drawn(const char* op, Dims dims, AttrMap attrs, int64_t first_sample = 0) {
  GraphBuilder b("draws");
  const Value rng = b.Input("rng", {DType::kI64, {3}});
  attrs["dims"] = dims;
  b.Output("y", Op(op, {rng}, attrs, "y"));
  const Result<Graph> graph = b.Build();
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  const std::vector<int64_t> state = {11, 5, first_sample};
  const auto values = EvaluateGraph(*graph, {{"rng", Tensor::FromInts({3}, state)}});
  EXPECT_TRUE(values.ok()) << values.status().message();
  return (*values)[static_cast<size_t>(graph->FindOutput("y"))];
}

double Moment(const Tensor& y, double center, int power) {
  double sum = 0;
  for (int64_t i = 0; i < y.elements(); ++i) sum += std::pow(y.at(i) - center, power);
  return sum / static_cast<double>(y.elements());
}

// 40,000 draws: five standard errors of each moment.
TEST(Draws, UniformHasTheMeanAndVarianceOfItsInterval) {
  const Tensor y = Drawn("random_uniform", {40, 1000}, {{"low", -2.0}, {"high", 4.0}});
  EXPECT_NEAR(Moment(y, 0, 1), 1, 5 * std::sqrt(3 / 40000.0));
  EXPECT_NEAR(Moment(y, 1, 2), 3, 5 * std::sqrt(7.2 / 40000.0));
  for (int64_t i = 0; i < y.elements(); ++i) {
    ASSERT_GE(y.at(i), -2);
    ASSERT_LT(y.at(i), 4);
  }
}

TEST(Draws, NormalHasItsMeanItsDeviationAndNoSkew) {
  const Tensor y = Drawn("random_normal", {40, 1000}, {{"mean", 3.0}, {"scale", 2.0}});
  EXPECT_NEAR(Moment(y, 0, 1), 3, 5 * 2 / std::sqrt(40000.0));
  EXPECT_NEAR(Moment(y, 3, 2), 4, 5 * 4 * std::sqrt(2 / 40000.0));
  EXPECT_NEAR(Moment(y, 3, 3), 0, 5 * 8 * std::sqrt(15 / 40000.0));
}

TEST(Draws, ASampleDrawsTheSameInAnySplitOfTheBatch) {
  for (const char* op : {"random_uniform", "random_normal"}) {
    const Tensor all = Drawn(op, {4, 7}, {}), last = Drawn(op, {1, 7}, {}, 3);
    for (int64_t i = 0; i < 7; ++i) EXPECT_EQ(last.at(i), all.at(21 + i)) << op;
  }
}

TEST(Draws, AnotherStreamDrawsOtherNumbers) {
  const Tensor a = Drawn("random_uniform", {1, 64}, {{"stream", 1}});
  const Tensor b = Drawn("random_uniform", {1, 64}, {{"stream", 2}});
  EXPECT_FALSE(a.same_bits(b));
}

}  // namespace
}  // namespace ridge
