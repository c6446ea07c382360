// cumsum: y = running sum of x along one axis.
#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/scan.h"

namespace ridge {
namespace {

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  Scan(call, in[0], out[0], 0, [](double sum, double x) { return sum + x; });
}

// x[j] is in every sum from its own on: dx = the running sum of dy from the other end.
void Gradient(GradBuilder& g) {
  AttrMap attrs = g.attrs();
  attrs["reverse"] = 1 - g.integer("reverse");
  g.dx() = Op("cumsum", {g.dy()}, std::move(attrs));
}

}  // namespace

OpDef CumsumDef() {
  return {
      .name = "cumsum",
      .doc =
          "y[k] = x[0] + .. + x[k] along `axis`; exclusive=1 leaves x[k] out, reverse=1 sums from "
          "the end. 64-bit integers are exact up to 2^53.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = ScanAttrs(),
      .cost_class = CostClass::kReduce,
      .infer_types = InferScan,
      .cost = ScanCost,
      .gradient = Gradient,
      .onnx = {"CumSum", 11, 14, 11},
      .axes = AxesBesidesAttr,
      .reference = Reference,
  };
}

}  // namespace ridge
