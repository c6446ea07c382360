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
  if (x[0] < std::get<double>(attrs.at("min"))) return std::get<double>(attrs.at("min"));
  if (x[0] > std::get<double>(attrs.at("max"))) return std::get<double>(attrs.at("max"));
  return x[0];
}

// dx = dy where min < y < max, else 0: 0 at the bounds and for NaN, as PyTorch's clamp, relu6 and
// hardtanh.  Reads y, not x: clip may run in place and x need not be kept.
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value dy = g.output_grad(0), y = g.output(0);
  const DType dtype = b.type(dy).dtype;
  const double min = g.number("min"), max = g.number("max");
  Value inside;
  if (min > -kInfinity) inside = b.Op("greater", {y, b.Scalar(dtype, min)});
  if (max < kInfinity) {
    const Value below = b.Op("less", {y, b.Scalar(dtype, max)});
    inside = inside.valid() ? b.Op("logical_and", {inside, below}) : below;
  }
  g.set_input_grad(0, inside.valid() ? b.Where(inside, dy, b.Scalar(dtype, 0)) : dy);
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
