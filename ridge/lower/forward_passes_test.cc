// Random stacks of operators that make rows one by one, of which few rows are read: the pass keeps
// the results' bits and the gradients, and never adds work.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ridge/graph/autodiff.h"
#include "ridge/graph/builder.h"
#include "ridge/graph/interpret.h"
#include "ridge/graph/passes/passes.h"
#include "ridge/graph/text.h"
#include "ridge/graph/verify.h"
#include "ridge/lower/passes.h"
#include "ridge/lower/pipeline.h"

namespace ridge {
namespace {

constexpr int64_t kBatch = 3, kRows = 6, kWidth = 4;

class RandomStack {
 public:
  explicit RandomStack(uint32_t seed) : random_(seed), b_("stack") {}

  Graph Build() {
    values_.push_back(Param("x", {kBatch, kRows, kWidth}));
    weight_ = Param("w", {kWidth, kWidth});
    scale_ = Param("s", {kWidth});
    const int count = 2 + Pick(10);
    for (int i = 0; i < count; ++i) values_.push_back(Next());
    for (int i = 0, outputs = 1 + Pick(2); i < outputs; ++i)
      b_.Output("out" + std::to_string(i), Few(Recent()));
    Result<Graph> graph = b_.Build();
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return *std::move(graph);
  }

 private:
  int Pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  Value Recent() {
    const int n = std::min<int>(3, static_cast<int>(values_.size()));
    return values_[values_.size() - 1 - static_cast<size_t>(Pick(n))];
  }
  Value Param(const std::string& name, Dims dims) {
    return b_.Parameter(name, {DType::kF64, std::move(dims)}, Init::Normal(1));
  }

  Value Next() {
    const Value x = Recent();
    switch (Pick(8)) {
      case 0:
        return Gelu(x);
      case 1:
        return x + Recent();
      case 2:
        return OpOutputs("layer_norm", {x, scale_, scale_})[0];
      case 3:
        return Op("matmul", {x, weight_, scale_}, {{"transpose_b", Pick(2)}});
      case 4:
        return Softmax(x);
      case 5:
        return x * Few(Recent(), /*axis=*/Pick(2));
      case 6:
        return Transpose(Transpose(x, {1, 0, 2}), {1, 0, 2});
      default:
        return Attended(x);
    }
  }

  Value Heads(Value x) {
    return Transpose(Reshape(x, {kBatch, kRows, 2, kWidth / 2}), {0, 2, 1, 3});
  }
  Value Attended(Value x) {
    const Value q = Heads(x), k = Heads(Recent()), v = Heads(Recent());
    const AttrMap attrs = {{"scale", 0.7}, {"causal", Pick(2)}};
    const Value y = OpOutputs("attention", {q, k, v}, attrs)[0];
    return Reshape(Transpose(y, {0, 2, 1, 3}), {kBatch, kRows, kWidth});
  }

  // One row, or two, of an axis; by slice or by gather.
  Value Few(Value x) {
    if (Pick(3) == 0) {
      const auto row = static_cast<double>(Pick(static_cast<int>(kRows)));
      return Gather(x, b_.Scalar(DType::kI64, row), 1);
    }
    const int64_t axis = Pick(2), first = Pick(2);
    return Slice(x, axis, first, first + 1 + Pick(2));
  }
  // One row, which broadcasts.
  Value Few(Value x, int64_t axis) { return Slice(x, axis, 1, 2); }

  std::mt19937 random_;
  GraphBuilder b_;
  std::vector<Value> values_;
  Value weight_, scale_;
};

// Outputs, and with `grads` the gradients of the sum of their squares.
std::vector<Tensor> Results(const Graph& graph, bool grads) {
  GraphBuilder b(graph);
  std::vector<ValueId> wanted;
  for (const GraphOutput& output : graph.outputs()) wanted.push_back(output.value);
  if (grads) {
    Value loss = b.Scalar(DType::kF64, 0);
    for (ValueId id : wanted) loss = loss + Sum(Square(b.At(id)));
    std::vector<Value> params;
    for (ValueId id : graph.ValuesOfKind(ValueKind::kParameter)) params.push_back(b.At(id));
    const auto made = AppendGradients(b, loss, params);
    EXPECT_TRUE(made.ok()) << made.status().message();
    for (Value grad : *made) wanted.push_back(grad.id);
  }
  const auto values = EvaluateGraph(b.graph(), {}, 3);
  EXPECT_TRUE(values.ok()) << values.status().message();
  std::vector<Tensor> results;
  for (ValueId id : wanted) results.push_back((*values)[static_cast<size_t>(id)]);
  return results;
}

bool Near(const Tensor& a, const Tensor& b) {
  double largest = 1, difference = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    largest = std::max(largest, std::fabs(a.at(i)));
    difference = std::max(difference, std::fabs(a.at(i) - b.at(i)));
  }
  return a.type() == b.type() && difference <= 1e-12 * largest;
}

class Stacks : public testing::TestWithParam<Result<Graph> (*)(Graph)> {};

TEST_P(Stacks, KeepResultsAndGradients) {
  int changed = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const Graph before = RandomStack(seed).Build();
    const Result<Graph> after = GetParam()(before);
    ASSERT_TRUE(after.ok()) << after.status().message();
    ASSERT_TRUE(CheckGraph(*after).ok()) << CheckGraph(*after).message();
    if (PrintGraph(before) == PrintGraph(*after)) continue;
    ++changed;
    const auto expected = Results(before, true), got = Results(*after, true);
    const size_t outputs = before.outputs().size();
    for (size_t i = 0; i < expected.size(); ++i) {
      const bool same = i < outputs ? expected[i].same_bits(got[i]) : Near(expected[i], got[i]);
      ASSERT_TRUE(same) << seed << ": " << i << "\n" << PrintGraph(before) << PrintGraph(*after);
    }
  }
  EXPECT_GT(changed, 20);
}

INSTANTIATE_TEST_SUITE_P(Passes, Stacks, testing::Values(PushDownSlices, FoldHeadTransposes));

TEST(PushDownSlices, NeverAddsWork) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const Graph before = RandomStack(seed).Build();
    const Result<Graph> after = PushDownSlices(before);
    ASSERT_TRUE(after.ok());
    EXPECT_LE(MeasureGraph(*after).flops, MeasureGraph(before).flops) << PrintGraph(before);
  }
}

}  // namespace
}  // namespace ridge
