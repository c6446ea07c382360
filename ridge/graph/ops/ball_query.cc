// ball_query: for each center the first points that lie in a ball around it (Qi et al., PointNet++,
// NeurIPS 2017).
//
// Every center gets the same number of indices: where the ball holds fewer points the first one
// stands in, so that a maximum over the group is not changed.  A ball without points names point 0.
#include <fmt/format.h>

#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

Status CheckPoints(const OpCall& call) {
  const TensorType &x = call.inputs[0], &centers = call.inputs[1];
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "x"));
  if (x.rank() != 3 || x.dims[1] < 1) {
    return CallError(call, fmt::format("x is {}; it must be [batch, points, coordinates] with at "
                                       "least 1 point",
                                       TypeToString(x)));
  }
  if (centers.dtype == x.dtype && centers.rank() == 3 && centers.dims[0] == x.dims[0] &&
      centers.dims[2] == x.dims[2])
    return Status();
  return CallError(call, fmt::format("centers is {}, x is {}; both must have one type, batch and "
                                     "number of coordinates",
                                     TypeToString(centers), TypeToString(x)));
}

// x: float [B,N,D].  centers: [B,M,D].  y: i64 [B,M,count].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckPoints(call));
  const int64_t count = call.integer("count");
  if (count < 1 || count > 1 << 20) {
    return CallError(call, fmt::format("count is {}; it must be in [1, 1048576]", count));
  }
  if (!(call.number("radius") >= 0)) {
    return CallError(call,
                     fmt::format("radius is {}; it must not be negative", call.number("radius")));
  }
  const Dims& centers = call.inputs[1].dims;
  const TensorType y{DType::kI64, {centers[0], centers[1], count}};
  RIDGE_RETURN_IF_ERROR(CheckDims(y.dims));
  return std::vector<TensorType>{y};
}

// Per pair and coordinate: subtract, square, add; and a comparison.
Cost EstimateCost(const OpCall& call) {
  const TensorType &x = call.inputs[0], &centers = call.inputs[1];
  return {.flops = x.dims[0] * x.dims[1] * centers.dims[1] * (3 * x.dims[2] + 1),
          .bytes_read = x.bytes() + centers.bytes(),
          .bytes_written = call.outputs[0].bytes()};
}

bool Within(const double* a, const double* b, int64_t width, double squared_radius) {
  double sum = 0;
  for (int64_t d = 0; d < width; ++d) sum += (a[d] - b[d]) * (a[d] - b[d]);
  return sum <= squared_radius;
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const Dims &x = call.inputs[0].dims, &centers = call.inputs[1].dims;
  const int64_t points = x[1], width = x[2], count = call.integer("count");
  const double radius = call.number("radius");
  for (int64_t center = 0; center < centers[0] * centers[1]; ++center) {
    const double* cloud = in[0] + center / centers[1] * points * width;
    double* group = out[0] + center * count;
    int64_t found = 0;
    for (int64_t i = 0; i < points && found < count; ++i) {
      if (Within(cloud + i * width, in[1] + center * width, width, radius * radius))
        group[found++] = static_cast<double>(i);
    }
    std::fill(group + found, group + count, found == 0 ? 0 : group[0]);
  }
}

Axes FindAxes(const OpCall& call) {
  return {Mapped(call, {0, 0}, 0), Mapped(call, {Factor::kNone, 1}, 1)};
}

}  // namespace

OpDef BallQueryDef() {
  return {
      .name = "ball_query",
      .doc =
          "y [B,M,count] = indices (i64) of the first points of x [B,N,D] whose distance to a "
          "center [B,M,D] is at most `radius`; the first of them fills the rest, and 0 where there "
          "is none.",
      .input_names = {"x", "centers"},
      .output_names = {"y"},
      .attr_defaults = {{"count", 1}, {"radius", 0.0}},
      .required_attrs = {"count", "radius"},
      .cost_class = CostClass::kReduce,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .axes = FindAxes,
      .reference = Reference,
  };
}

}  // namespace ridge
