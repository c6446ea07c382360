// hard_sigmoid: y = alpha x + beta, limited to [0, 1].
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap& attrs) {
  const double line =
      std::get<double>(attrs.at("alpha")) * x[0] + std::get<double>(attrs.at("beta"));
  return line < 0 ? 0 : line > 1 ? 1 : line;
}

// dx = alpha dy for 0 < y < 1, else 0.
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value y = g.output(0), dy = g.output_grad(0);
  const Value zero = b.Scalar(b.type(dy).dtype, 0), one = b.Scalar(b.type(dy).dtype, 1);
  const Value inside = b.Op("logical_and", {b.Op("greater", {y, zero}), b.Op("less", {y, one})});
  g.set_input_grad(0, b.Where(inside, b.MulScalar(dy, g.number("alpha")), zero));
}

}  // namespace

OpDef HardSigmoidDef() {
  return {
      .name = "hard_sigmoid",
      .doc = "y = alpha x + beta, limited to [0, 1].",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = {{"alpha", 0.2}, {"beta", 0.5}},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<4>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "HardSigmoid@6",
      .elementwise = Element,
  };
}

}  // namespace ridge
