// reduce_sum, reduce_mean, reduce_max, reduce_min, reduce_prod, reduce_log_sum_exp: one number of
// those along some axes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ridge/graph/ops/shared/reduce.h"

namespace ridge {
namespace {

using Inputs = std::span<const double* const>;
using Outputs = std::span<double* const>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What reductions have in common; the rest is set by each.
OpDef Reduction(const char* name, const char* doc, OnnxOp onnx) {
  return {
      .name = name,
      .doc = doc,
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = ReduceAttrs(),
      .cost_class = CostClass::kReduce,
      .infer_types = InferReduce<Operands::kNumber, EmptyAxis::kDefined>,
      .cost = ReduceCost,
      .onnx = onnx,
      .axes = KeptAxes,
  };
}

void SumReference(const OpCall& call, Inputs in, Outputs out) {
  Reduce(call, in[0], out[0], 0, [](double sum, double x) { return sum + x; });
}

// dx = dy, broadcast back.
void SumGradient(GradBuilder& g) {
  const Dims dims = g.x().dims();
  const Value dx = Cast(WithKeptDims(g, g.dy()), g.x().dtype());
  g.dx() = Expand(dx, dims);
}

OpDef SumDef() {
  OpDef op = Reduction("reduce_sum",
                       "y = sum of x along `axes`; 0 for no elements. 64-bit integers are exact up "
                       "to 2^53. Axes empty: all of them. y is of `out_dtype`; empty: that of x.",
                       {"ReduceSum", 1, 13, 1});
  op.attr_defaults = SumAttrs();
  op.gradient = SumGradient;
  op.axes = SummedAxes;
  op.linear = Linear::kJointly;
  op.reference = SumReference;
  return op;
}

void MeanReference(const OpCall& call, Inputs in, Outputs out) {
  SumReference(call, in, out);
  const auto width = static_cast<double>(ReducedWidth(call.inputs[0].dims, call.integers("axes")));
  for (int64_t o = 0; o < call.outputs[0].elements(); ++o) out[0][o] /= width;
}

// dx = dy / width, broadcast back; width 0 has no dx to fill.
void MeanGradient(GradBuilder& g) {
  const Dims dims = g.x().dims();
  const int64_t width = std::max<int64_t>(ReducedWidth(dims, g.integers("axes")), 1);
  const Value share = g.dy() * (1 / static_cast<double>(width));
  const Value dx = Cast(WithKeptDims(g, share), g.x().dtype());
  g.dx() = Expand(dx, dims);
}

OpDef MeanDef() {
  OpDef op = Reduction("reduce_mean",
                       "y = mean of x along `axes`; NaN for no elements. Axes empty: all of them. "
                       "y is of `out_dtype`; empty: that of x.",
                       {"ReduceMean", 1, 13, 1});
  op.attr_defaults = SumAttrs();
  op.infer_types = InferReduce<Operands::kFloat, EmptyAxis::kDefined>;
  op.gradient = MeanGradient;
  op.axes = AveragedAxes;
  op.linear = Linear::kJointly;
  op.reference = MeanReference;
  return op;
}

void MaxReference(const OpCall& call, Inputs in, Outputs out) {
  Reduce(call, in[0], out[0], -kInfinity,
         [](double best, double x) { return x > best || std::isnan(x) ? x : best; });
}

OpDef MaxDef() {
  OpDef op = Reduction("reduce_max",
                       "y = the largest x along `axes`; NaN if any is. Ties share the gradient "
                       "equally, as in PyTorch's amax, or along one axis with ties=\"first\" the "
                       "first takes it, as in its max(dim). Axes empty: all of them.",
                       {"ReduceMax", 1, 13, 1, 12});
  op.attr_defaults = ExtremumAttrs();
  op.infer_types = InferExtremum;
  op.gradient = [](GradBuilder& g) { g.dx() = ExtremumGrad(g, /*sign=*/1); };
  op.shared_axes = MaximizedAxes;
  op.reference = MaxReference;
  return op;
}

void MinReference(const OpCall& call, Inputs in, Outputs out) {
  Reduce(call, in[0], out[0], kInfinity,
         [](double best, double x) { return x < best || std::isnan(x) ? x : best; });
}

OpDef MinDef() {
  OpDef op = Reduction("reduce_min",
                       "y = the smallest x along `axes`; NaN if any is. Ties share the gradient "
                       "equally, as in PyTorch's amin, or along one axis with ties=\"first\" the "
                       "first takes it, as in its min(dim). Axes empty: all of them.",
                       {"ReduceMin", 1, 13, 1, 12});
  op.attr_defaults = ExtremumAttrs();
  op.infer_types = InferExtremum;
  op.gradient = [](GradBuilder& g) { g.dx() = ExtremumGrad(g, /*sign=*/-1); };
  op.shared_axes = MinimizedAxes;
  op.reference = MinReference;
  return op;
}

void ProdReference(const OpCall& call, Inputs in, Outputs out) {
  Reduce(call, in[0], out[0], 1, [](double product, double x) { return product * x; });
}

// dx = dy * (product of the others).  With p the product of the elements that are not 0:
//   no zero:   p / x
//   one zero:  p at the zero, 0 elsewhere
//   more:      0
void ProdGradient(GradBuilder& g) {
  const Value x = g.x();
  const DType dtype = x.dtype();
  const Value zero = ScalarLike(x, 0), one = ScalarLike(x, 1);
  const Value is_zero = Equal(x, zero);
  const Value zeros = Sum(Cast(is_zero, dtype), g.integers("axes"), /*keep_dims=*/true);
  const Value safe = Where(is_zero, one, x);
  const Value product = Op("reduce_prod", {safe}, {{"axes", g.integers("axes")}, {"keep_dims", 1}});
  const Value at_zero = Where(Equal(zeros, one), product, zero);
  const Value quotient = product / safe;
  const Value elsewhere = Where(Equal(zeros, zero), quotient, zero);
  const Value others = Where(is_zero, at_zero, elsewhere);
  g.dx() = WithKeptDims(g, g.dy()) * others;
}

OpDef ProdDef() {
  OpDef op = Reduction("reduce_prod",
                       "y = product of x along `axes`; 1 for no elements. The gradient is right at "
                       "zeros too. Axes empty: all of them.",
                       {"ReduceProd", 1, 13, 1});
  op.gradient = ProdGradient;
  op.reference = ProdReference;
  return op;
}

// max + log(sum(exp(x - max))), where no exp overflows; an infinite maximum is the result.
void LogSumExpReference(const OpCall& call, Inputs in, Outputs out) {
  MaxReference(call, in, out);
  const Dims& dims = call.inputs[0].dims;
  std::vector<double> sums(static_cast<size_t>(call.outputs[0].elements()));
  ForEachStrided(dims, BroadcastStrides(KeptDims(call), dims), 0, [&](int64_t i, int64_t o) {
    sums[static_cast<size_t>(o)] += std::exp(in[0][i] - out[0][o]);
  });
  for (size_t o = 0; o < sums.size(); ++o) {
    if (std::isfinite(out[0][o])) out[0][o] += std::log(sums[o]);
  }
}

// dx = dy * exp(x - y); 0 where y is -inf, as in PyTorch.
void LogSumExpGradient(GradBuilder& g) {
  const Value x = g.x(), y = WithKeptDims(g, g.y());
  const Value none = Equal(y, -kInfinity);
  const Value shift = Where(none, ScalarLike(x, 0), y);
  const Value slope = Exp(x - shift);
  g.dx() = WithKeptDims(g, g.dy()) * slope;
}

// Per element: maximum, subtract, exp, add.
Cost LogSumExpCost(const OpCall& call) {
  Cost cost = ReduceCost(call);
  cost.flops *= 4;
  return cost;
}

OpDef LogSumExpDef() {
  OpDef op = Reduction("reduce_log_sum_exp",
                       "y = log(sum(exp(x))) along `axes`, without overflow; -inf for no elements. "
                       "Axes empty: all of them.",
                       {"ReduceLogSumExp", 1, 13});
  op.infer_types = InferReduce<Operands::kFloat, EmptyAxis::kDefined>;
  op.cost = LogSumExpCost;
  op.gradient = LogSumExpGradient;
  op.reference = LogSumExpReference;
  return op;
}

}  // namespace

std::vector<OpDef> ReductionOps() {
  return {SumDef(), MeanDef(), MaxDef(), MinDef(), ProdDef(), LogSumExpDef()};
}

}  // namespace ridge
