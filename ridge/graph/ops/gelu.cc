// gelu: y = x Phi(x), Phi the normal distribution, or its tanh form.
#include "ridge/graph/ops/shared/gelu_formula.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap& attrs) {
  return Gelu(x[0], GeluUsesTanh(attrs));
}

void Gradient(GradBuilder& g) {
  g.set_input_grad(0, g.b().Op("gelu_grad", {g.output_grad(0), g.input(0)}, g.attrs()));
}

}  // namespace

OpDef GeluDef() {
  return {
      .name = "gelu",
      .doc =
          "y = x Phi(x), Phi the normal distribution; approximate=\"tanh\" takes "
          "x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = {{"approximate", std::string("none")}},
      .infer_types = InferGelu,
      .cost = PointwiseCost<5>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Gelu@20",
      .elementwise = Element,
  };
}

}  // namespace ridge
