// farthest_points: indices of points that lie far from each other (Eldar et al., 1997; Qi et al.,
// PointNet++, NeurIPS 2017).
//
// Greedy: after the first point each next one is the farthest from those chosen so far, which takes
// one distance for each pair of a point and a chosen one.  PointNet++ begins at a random point;
// here it is point 0, so that a model is a function of its input.
#include <fmt/format.h>

#include <limits>

#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

// x: float [B,N,D].  y: i64 [B,count].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "x"));
  if (x.rank() != 3) {
    return CallError(
        call, fmt::format("x is {}; it must be [batch, points, coordinates]", TypeToString(x)));
  }
  const int64_t count = call.integer("count");
  if (count < 1 || count > x.dims[1]) {
    return CallError(call, fmt::format("count is {}, x is {}; count must be in [1, {}], the number "
                                       "of points",
                                       count, TypeToString(x), x.dims[1]));
  }
  return std::vector<TensorType>{{DType::kI64, {x.dims[0], count}}};
}

// Per point, coordinate and chosen point: subtract, square, add; and two comparisons.
Cost EstimateCost(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  const int64_t each = 3 * x.dims[2] + 2;
  return {.flops = x.dims[0] * x.dims[1] * call.integer("count") * each,
          .bytes_read = x.bytes(),
          .bytes_written = call.outputs[0].bytes()};
}

double SquaredDistance(const double* a, const double* b, int64_t width) {
  double sum = 0;
  for (int64_t d = 0; d < width; ++d) sum += (a[d] - b[d]) * (a[d] - b[d]);
  return sum;
}

// `nearest` holds the squared distance of each point to the chosen ones.  The first of equals is
// the farthest; a NaN is no distance.
void Choose(const double* points, int64_t width, std::vector<double>& nearest,
            std::span<double> chosen) {
  std::fill(nearest.begin(), nearest.end(), std::numeric_limits<double>::infinity());
  size_t next = 0;
  for (double& place : chosen) {
    place = static_cast<double>(next);
    const double* last = points + static_cast<int64_t>(next) * width;
    size_t farthest = 0;
    for (size_t i = 0; i < nearest.size(); ++i) {
      const double to_last = SquaredDistance(points + static_cast<int64_t>(i) * width, last, width);
      if (to_last < nearest[i]) nearest[i] = to_last;
      if (nearest[i] > nearest[farthest]) farthest = i;
    }
    next = farthest;
  }
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const Dims& dims = call.inputs[0].dims;
  const int64_t count = call.integer("count");
  std::vector<double> nearest(static_cast<size_t>(dims[1]));
  for (int64_t sample = 0; sample < dims[0]; ++sample) {
    Choose(in[0] + sample * dims[1] * dims[2], dims[2], nearest,
           {out[0] + sample * count, static_cast<size_t>(count)});
  }
}

}  // namespace

OpDef FarthestPointsDef() {
  return {
      .name = "farthest_points",
      .doc =
          "y [B,count] = indices (i64) of points of x [B,N,D] that lie far apart: 0, then each "
          "time the point whose distance to the nearest chosen one is largest; the first of "
          "equals.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = {{"count", 1}},
      .required_attrs = {"count"},
      .cost_class = CostClass::kReduce,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .axes = FirstAxis,
      .reference = Reference,
  };
}

}  // namespace ridge
