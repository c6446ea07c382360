// clip: y = min(max(x, `min`), `max`).  NaN stays NaN.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const double min = call.number("min"), max = call.number("max");
  if (!(min <= max)) {
    return CallError(call, fmt::format("min is {} and max is {}; min must be <= max", min, max));
  }
  return InferPointwise<Operands::kNumber>(call);
}

double Element(std::span<const double> x, const AttrMap& attrs) {
  if (x[0] < attrs.number("min")) return attrs.number("min");
  if (x[0] > attrs.number("max")) return attrs.number("max");
  return x[0];
}

// dx = dy where min < y < max, else 0: 0 at the bounds and for NaN, as PyTorch's clamp, relu6 and
// hardtanh.  Reads y, not x: clip may run in place and x need not be kept.
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value dy = g.dy(), y = g.y();
  const DType dtype = dy.dtype();
  const double min = g.number("min"), max = g.number("max");
  Value inside;
  if (min > -kInfinity) inside = y > b.Scalar(dtype, min);
  if (max < kInfinity) {
    const Value below = y < b.Scalar(dtype, max);
    inside = inside.valid() ? And(inside, below) : below;
  }
  g.dx() = inside.valid() ? Where(inside, dy, b.Scalar(dtype, 0)) : dy;
}

}  // namespace

OpDef ClipDef() {
  return {
      .name = "clip",
      .doc = "y = x limited to [min, max]. The gradient flows where min < y < max.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = {{"min", -kInfinity}, {"max", kInfinity}},
      .infer_types = InferTypes,
      .cost = PointwiseCost<2>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = {"Clip", 6, 13, 12, 12},
      .elementwise = Element,
  };
}

}  // namespace ridge
