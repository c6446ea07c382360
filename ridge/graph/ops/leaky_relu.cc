// leaky_relu: y = x for x > 0, else alpha * x.
#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap& attrs) {
  return x[0] > 0 ? x[0] : std::get<double>(attrs.at("alpha")) * x[0];
}

// dx = dy for x > 0, else alpha * dy.
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value dy = g.output_grad(0);
  const Value positive = b.Op("greater", {g.input(0), b.Scalar(b.type(dy).dtype, 0)});
  g.set_input_grad(0, b.Where(positive, dy, b.MulScalar(dy, g.number("alpha"))));
}

}  // namespace

OpDef LeakyReluDef() {
  return {
      .name = "leaky_relu",
      .doc = "y = x for x > 0, else alpha * x.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = {{"alpha", 0.01}},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<2>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "LeakyRelu@16",
      .elementwise = Element,
  };
}

}  // namespace ridge
