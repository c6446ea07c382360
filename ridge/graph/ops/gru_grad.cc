// gru_grad: the way back through the steps of gru.
//
// With dh = dy[t] + what step t+1 handed back: dz = dh * (h[t-1] - n), dn = dh * (1 - z); through
// tanh dn is the candidate's dprojected, dr = dn * q and dq = dn * r, where q is what r multiplied.
// dinner has dq where dprojected has dn.  Step t-1 gets dinner[t] r + dh * z.
#include <algorithm>

#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/sequence.h"

namespace ridge {
namespace {

enum Input : size_t { kR, kH, kY, kActivated, kDy };

// r: float [3H,H].  h: [N,H].  y, dy: [T,N,H].  activated: [T,N,4H].
// dprojected, dinner: [T,N,3H].  dh: [N,H].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckWeight(call, kR, 3));
  RIDGE_RETURN_IF_ERROR(CheckGates(call, "rzn"));
  RIDGE_RETURN_IF_ERROR(CheckSteps(call, kActivated, "activated", 4, kR));
  const SequenceExtents e = SequenceExtentsOf(call, kActivated, kR);
  const DType dtype = call.inputs[kR].dtype;
  const TensorType state{dtype, {e.batch, e.hidden}};
  const TensorType states{dtype, {e.seq_len, e.batch, e.hidden}};
  RIDGE_RETURN_IF_ERROR(CheckType(call, kH, "h", state, "one state a sample"));
  RIDGE_RETURN_IF_ERROR(CheckType(call, kY, "y", states, "one state a step"));
  RIDGE_RETURN_IF_ERROR(CheckType(call, kDy, "dy", states, "one state a step"));
  const TensorType projected{dtype, {e.seq_len, e.batch, 3 * e.hidden}};
  return std::vector<TensorType>{projected, projected, state};
}

Cost EstimateCost(const OpCall& call) {
  return SequenceCost(call, SequenceExtentsOf(call, kActivated, kR), 3, 20);
}

// One row; dh becomes what step t-1 gets beside the product.
void RowGrad(const std::string& gates, int64_t hidden, const double* a, const double* before,
             double* dh, double* dprojected, double* dinner) {
  const int64_t at_r = GateAt(gates, 'r') * hidden, at_z = GateAt(gates, 'z') * hidden,
                at_n = GateAt(gates, 'n') * hidden;
  for (int64_t k = 0; k < hidden; ++k) {
    const double r = a[k], z = a[hidden + k], n = a[2 * hidden + k], q = a[3 * hidden + k];
    const double dn = dh[k] * (1 - z) * (1 - n * n);
    dprojected[at_z + k] = dinner[at_z + k] = dh[k] * (before[k] - n) * z * (1 - z);
    dprojected[at_r + k] = dinner[at_r + k] = dn * q * r * (1 - r);
    dprojected[at_n + k] = dn;
    dinner[at_n + k] = dn * r;
    dh[k] *= z;
  }
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const SequenceExtents e = SequenceExtentsOf(call, kActivated, kR);
  const int64_t size = e.StateElements(), hidden = e.hidden;
  double* dh = out[2];
  std::fill_n(dh, size, 0.0);
  for (int64_t step = e.seq_len; step-- > 0;) {
    const int64_t t = e.TimeAt(step) * size;
    const double* before = step == 0 ? in[kH] : in[kY] + e.TimeAt(step - 1) * size;
    for (int64_t n = 0; n < e.batch; ++n) {
      const int64_t row = n * hidden;
      double* dinner = out[1] + (t + row) * 3;
      for (int64_t k = 0; k < hidden; ++k) dh[row + k] += in[kDy][t + row + k];
      RowGrad(call.text("gates"), hidden, in[kActivated] + (t + row) * 4, before + row, dh + row,
              out[0] + (t + row) * 3, dinner);
      AddInnerGrad(in[kR], 3 * hidden, hidden, dinner, dh + row);
    }
  }
}

}  // namespace

OpDef GruGradDef() {
  return {
      .name = "gru_grad",
      .doc =
          "The gradients of gru in projected and h, from its r and h, what it gave as y and "
          "activated, and dy. dinner is the gradient of h r^T + bias; that of r is dinner^T times "
          "the states before each step, that of bias the sum of dinner's candidate.",
      .input_names = {"r", "h", "y", "activated", "dy"},
      .output_names = {"dprojected", "dinner", "dh"},
      .attr_defaults = {{"gates", "rzn"}, {"reverse", 0}},
      .cost_class = CostClass::kMatmul,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .recompute = Recompute::kExpensive,
      .reference = Reference,
  };
}

}  // namespace ridge
