// relu_grad: dx = dy where y > 0, else 0; y is relu's output.
#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> v, const AttrMap&) { return v[1] > 0 ? v[0] : 0; }

// Linear in dy; y only switches.
void Gradient(GradBuilder& g) {
  SetBroadcastGrad(g, 0, g.b().Op("relu_grad", {g.output_grad(0), g.input(1)}));
}

}  // namespace

OpDef ReluGradDef() {
  return {
      .name = "relu_grad",
      .doc = "dx = y > 0 ? dy : 0, the gradient of relu from its output y.",
      .input_names = {"dy", "y"},
      .output_names = {"dx"},
      .infer_types = InferPointwise<Operands::kNumber>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .no_gradient_inputs = {1},
      .in_place = {{0, 0}, {0, 1}},
      .recompute = Recompute::kCheap,
      .elementwise = Element,
  };
}

}  // namespace ridge
