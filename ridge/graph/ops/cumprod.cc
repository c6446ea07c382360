// cumprod: y = running product of x along one axis.
#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/scan.h"

namespace ridge {
namespace {

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  Scan(call, in[0], out[0], 1, [](double product, double x) { return product * x; });
}

void Gradient(GradBuilder& g) { g.dx() = Op("cumprod_grad", {g.x(), g.dy()}, g.attrs()); }

}  // namespace

OpDef CumprodDef() {
  return {
      .name = "cumprod",
      .doc =
          "y[k] = x[0] * .. * x[k] along `axis`; exclusive=1 leaves x[k] out, reverse=1 "
          "multiplies from the end. The gradient is right at zeros too.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = ScanAttrs(),
      .cost_class = CostClass::kReduce,
      .infer_types = InferScan,
      .cost = ScanCost,
      .gradient = Gradient,
      .onnx = {"CumProd", 26, 26, 26},
      .axes = AxesBesidesAttr,
      .reference = Reference,
  };
}

}  // namespace ridge
