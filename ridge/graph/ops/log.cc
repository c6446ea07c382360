// log: y = ln(x); NaN for x < 0 and -inf at 0.
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return std::log(x[0]); }

// dx = dy / x.
void Gradient(GradBuilder& g) { g.set_input_grad(0, g.b().Div(g.output_grad(0), g.input(0))); }

}  // namespace

OpDef LogDef() {
  return {
      .name = "log",
      .doc = "y = ln(x); NaN for x < 0 and -inf at 0.",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Log@13",
      .elementwise = Element,
  };
}

}  // namespace ridge
