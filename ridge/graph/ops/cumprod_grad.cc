// cumprod_grad: dx of cumprod.
//
// With B[j] the product of all x before j, dx[j] = B[j] * S[j], where S gathers what comes after
// without dividing, so zeros are no special case:
//   inclusive:  S[j] = dy[j] + x[j+1] S[j+1]
//   exclusive:  S[j] = dy[j+1] + x[j+1] S[j+1]
#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/scan.h"

namespace ridge {
namespace {

Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "x"));
  RIDGE_RETURN_IF_ERROR(CheckType(call, 1, "dy", call.inputs[0], "as x"));
  return InferScan(call);
}

Cost EstimateCost(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  return {.flops = 4 * x.elements(), .bytes_read = 2 * x.bytes(), .bytes_written = x.bytes()};
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const ScanLines lines(call);
  const double *x = in[0], *dy = in[1];
  const int64_t length = lines.length();
  for (int64_t line = 0; line < lines.count(); ++line) {
    double before = 1;
    for (int64_t k = 0; k < length; ++k) {
      const int64_t at = lines.At(line, k);
      out[0][at] = before;
      before *= x[at];
    }
    double after = 0;  // x[j+1] S[j+1], with dy[j+1] when exclusive
    for (int64_t k = length; k-- > 0;) {
      const int64_t at = lines.At(line, k);
      const double sum = after + (lines.exclusive() ? 0 : dy[at]);
      out[0][at] *= sum;
      after = x[at] * sum + (lines.exclusive() ? dy[at] : 0);
    }
  }
}

}  // namespace

OpDef CumprodGradDef() {
  return {
      .name = "cumprod_grad",
      .doc = "dx of cumprod with the same attributes, from x and dy; no division, right at zeros.",
      .input_names = {"x", "dy"},
      .output_names = {"dx"},
      .attr_defaults = ScanAttrs(),
      .cost_class = CostClass::kReduce,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .shared_axes =
          [](const OpCall& call) {
            Axes axes = AxesBesidesAttr(call);
            for (Factor& factor : axes) factor.inputs[1] = factor.inputs[0];
            return axes;
          },
      .reference = Reference,
  };
}

}  // namespace ridge
