// rnn_grad: the way back through the steps of rnn.
//
// With dh = dy[t] + dprojected[t+1] r: dprojected[t] = dh * (1 - y^2), or dh where y > 0.
#include <algorithm>

#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/sequence.h"

namespace ridge {
namespace {

enum Input : size_t { kR, kY, kDy };

// r: float [H,H].  y, dy: [T,N,H].  dprojected: [T,N,H].  dh: [N,H].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckWeight(call, kR, 1));
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "relu"));
  RIDGE_RETURN_IF_ERROR(CheckSteps(call, kY, "y", 1, kR));
  const SequenceExtents e = SequenceExtentsOf(call, kY, kR);
  RIDGE_RETURN_IF_ERROR(CheckType(call, kDy, "dy", call.inputs[kY], "as y"));
  return std::vector<TensorType>{call.inputs[kY], {call.inputs[kR].dtype, {e.batch, e.hidden}}};
}

Cost EstimateCost(const OpCall& call) {
  return SequenceCost(call, SequenceExtentsOf(call, kY, kR), 1, 4);
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const SequenceExtents e = SequenceExtentsOf(call, kY, kR);
  const bool relu = call.integer("relu") != 0;
  const int64_t size = e.StateElements();
  double* dh = out[1];
  std::fill_n(dh, size, 0.0);
  for (int64_t step = e.seq_len; step-- > 0;) {
    const int64_t t = e.TimeAt(step) * size;
    double* d = out[0] + t;
    for (int64_t k = 0; k < size; ++k) {
      const double y = in[kY][t + k], slope = relu ? (y > 0 ? 1 : 0) : 1 - y * y;
      d[k] = (dh[k] + in[kDy][t + k]) * slope;
    }
    std::fill_n(dh, size, 0.0);
    for (int64_t row = 0; row < size; row += e.hidden)
      AddInnerGrad(in[kR], e.hidden, e.hidden, d + row, dh + row);
  }
}

}  // namespace

OpDef RnnGradDef() {
  return {
      .name = "rnn_grad",
      .doc =
          "The gradients of rnn in projected and h, from its r, what it gave as y, and dy. That of "
          "r is dprojected^T times the states before each step.",
      .input_names = {"r", "y", "dy"},
      .output_names = {"dprojected", "dh"},
      .attr_defaults = {{"relu", 0}, {"reverse", 0}},
      .cost_class = CostClass::kMatmul,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .in_place = {{0, 2}},
      .recompute = Recompute::kExpensive,
      .reference = Reference,
  };
}

}  // namespace ridge
