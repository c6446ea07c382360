// elu: y = x for x > 0, else alpha (e^x - 1).
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap& attrs) {
  return x[0] > 0 ? x[0] : std::get<double>(attrs.at("alpha")) * std::expm1(x[0]);
}

// dx = dy for x > 0, else dy alpha e^x, which is dy (y + alpha).
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value dy = g.output_grad(0);
  const Value positive = b.Op("greater", {g.input(0), b.Scalar(b.type(dy).dtype, 0)});
  const Value slope = b.AddScalar(g.output(0), g.number("alpha"));
  g.set_input_grad(0, b.Where(positive, dy, b.Mul(dy, slope)));
}

}  // namespace

OpDef EluDef() {
  return {
      .name = "elu",
      .doc = "y = x for x > 0, else alpha (e^x - 1).",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = {{"alpha", 1.0}},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<4>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Elu@6",
      .elementwise = Element,
  };
}

}  // namespace ridge
