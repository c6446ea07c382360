// lstm_grad: the way back through the steps of lstm.
//
// With dh = dy[t] + what step t+1 handed back, and dc likewise: do = dh * tanh(c), dc += dh * o *
// (1 - tanh(c)^2), di = dc * g, dg = dc * i, df = dc * c[t-1]; through the activations these are
// dprojected[t]; step t-1 gets dprojected[t] r and dc * f.
#include <algorithm>
#include <cmath>

#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/sequence.h"

namespace ridge {
namespace {

enum Input : size_t { kR, kC, kCells, kActivated, kDy, kDCells };

// r: float [4H,H].  c: [N,H].  cells, dy, dcells: [T,N,H].  activated: [T,N,4H].
// dprojected: [T,N,4H].  dh, dc: [N,H].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckWeight(call, kR, 4));
  RIDGE_RETURN_IF_ERROR(CheckGates(call, "ifgo"));
  RIDGE_RETURN_IF_ERROR(CheckSteps(call, kActivated, "activated", 4, kR));
  const SequenceExtents e = SequenceExtentsOf(call, kActivated, kR);
  const DType dtype = call.inputs[kR].dtype;
  const TensorType state{dtype, {e.batch, e.hidden}};
  const TensorType states{dtype, {e.seq_len, e.batch, e.hidden}};
  RIDGE_RETURN_IF_ERROR(CheckType(call, kC, "c", state, "one state a sample"));
  RIDGE_RETURN_IF_ERROR(CheckType(call, kCells, "cells", states, "one state a step"));
  RIDGE_RETURN_IF_ERROR(CheckType(call, kDy, "dy", states, "one state a step"));
  if (call.has_input(kDCells))
    RIDGE_RETURN_IF_ERROR(CheckType(call, kDCells, "dcells", states, "one state a step"));
  return std::vector<TensorType>{call.inputs[kActivated], state, state};
}

Cost EstimateCost(const OpCall& call) {
  return SequenceCost(call, SequenceExtentsOf(call, kActivated, kR), 4, 35);
}

// One element's blocks lie `hidden` apart; `at` finds them.
struct Blocks {
  int64_t i, f, g, o;
  Blocks(const std::string& gates, int64_t hidden)
      : i(GateAt(gates, 'i') * hidden),
        f(GateAt(gates, 'f') * hidden),
        g(GateAt(gates, 'g') * hidden),
        o(GateAt(gates, 'o') * hidden) {}
};

// One element: d has its four blocks set, dc becomes what step t-1 gets.
void ElementGrad(const Blocks& at, const double* a, double c, double before, double dh, double& dc,
                 double* d) {
  const double i = a[at.i], f = a[at.f], g = a[at.g], o = a[at.o], t = std::tanh(c);
  dc += dh * o * (1 - t * t);
  d[at.o] = dh * t * o * (1 - o);
  d[at.i] = dc * g * i * (1 - i);
  d[at.g] = dc * i * (1 - g * g);
  d[at.f] = dc * before * f * (1 - f);
  dc *= f;
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const SequenceExtents e = SequenceExtentsOf(call, kActivated, kR);
  const Blocks at(call.text("gates"), e.hidden);
  const int64_t size = e.StateElements(), hidden = e.hidden;
  double *dh = out[1], *dc = out[2];
  std::fill_n(dh, size, 0.0);
  std::fill_n(dc, size, 0.0);
  for (int64_t step = e.seq_len; step-- > 0;) {
    const int64_t t = e.TimeAt(step) * size;
    const double* before = step == 0 ? in[kC] : in[kCells] + e.TimeAt(step - 1) * size;
    for (int64_t s = 0; s < size; ++s) {
      const int64_t row = (t + s / hidden * hidden) * 4 + s % hidden;
      const double dstate = dh[s] + in[kDy][t + s];
      if (call.has_input(kDCells)) dc[s] += in[kDCells][t + s];
      ElementGrad(at, in[kActivated] + row, in[kCells][t + s], before[s], dstate, dc[s],
                  out[0] + row);
    }
    std::fill_n(dh, size, 0.0);
    for (int64_t n = 0; n < e.batch; ++n)
      AddInnerGrad(in[kR], 4 * hidden, hidden, out[0] + (t + n * hidden) * 4, dh + n * hidden);
  }
}

}  // namespace

OpDef LstmGradDef() {
  return {
      .name = "lstm_grad",
      .doc =
          "The gradients of lstm in projected, h and c, from its r and c, what it gave as cells "
          "and "
          "activated, dy, and dcells where cells was read. That of r is dprojected^T times the "
          "states before each step.",
      .input_names = {"r", "c", "cells", "activated", "dy", "dcells?"},
      .output_names = {"dprojected", "dh", "dc"},
      .attr_defaults = {{"gates", "ifgo"}, {"reverse", 0}},
      .cost_class = CostClass::kMatmul,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .in_place = {{0, 3}},
      .recompute = Recompute::kExpensive,
      .reference = Reference,
  };
}

}  // namespace ridge
