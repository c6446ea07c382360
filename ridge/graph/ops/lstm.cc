// lstm: the steps of a long short-term memory; the input's product comes ready.
//
// Hochreiter and Schmidhuber, 1997, with the forget gate of Gers et al., 2000.  What the gates were
// is kept for the gradient, where the projected input was.
#include <cmath>

#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/sequence.h"

namespace ridge {
namespace {

// projected: float [T,N,4H].  r: [4H,H].  h, c: [N,H].
// y, cells: [T,N,H].  activated: [T,N,4H].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckSequence(call, 4));
  RIDGE_RETURN_IF_ERROR(CheckGates(call, "ifgo"));
  const SequenceExtents e = SequenceExtentsOf(call, 0, 1);
  RIDGE_RETURN_IF_ERROR(CheckType(call, 3, "c", call.inputs[2], "as h"));
  const TensorType states{call.inputs[0].dtype, {e.seq_len, e.batch, e.hidden}};
  return std::vector<TensorType>{states, states, call.inputs[0]};
}

// An element of a state: five exponentials of about 10, and 5 more.
Cost EstimateCost(const OpCall& call) {
  return SequenceCost(call, SequenceExtentsOf(call, 0, 1), 4, 55);
}

// dprojected, dh, dc = lstm_grad(r, c, cells, activated, dy, dcells); dr = dprojected^T h[t-1].
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  if (g.has_dy(2)) {
    b.Fail(Status(ErrorCode::kUnsupported,
                  "lstm: output 'activated' has no gradient; it is kept for the gradient of y"));
    return;
  }
  const Value dcells = g.has_dy(1) ? g.dy(1) : Value();
  const std::vector<Value> grads =
      OpOutputs("lstm_grad", {g.x(1), g.x(3), g.y(1), g.y(2), g.dy(), dcells}, g.attrs());
  if (!b.ok()) return;
  g.dx() = grads[0];
  if (g.needs_dx(1)) {
    g.dx(1) = RecurrentWeightGrad(b, grads[0], g.x(2), g.y(), g.integer("reverse") != 0);
  }
  g.dx(2) = grads[1];
  g.dx(3) = grads[2];
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const SequenceExtents e = SequenceExtentsOf(call, 0, 1);
  const std::string& gates = call.text("gates");
  const int64_t hidden = e.hidden, rows = 4 * hidden;
  const auto at = [&](char gate) { return GateAt(gates, gate) * hidden; };
  const double *h = in[2], *c = in[3];
  for (int64_t step = 0; step < e.seq_len; ++step) {
    const int64_t state = e.TimeAt(step) * e.StateElements();
    for (int64_t n = 0; n < e.batch; ++n) {
      double* a = out[2] + state * 4 + n * rows;
      std::copy_n(in[0] + state * 4 + n * rows, rows, a);
      AddInner(in[1], rows, hidden, h + n * hidden, a);
      double *y = out[0] + state + n * hidden, *cell = out[1] + state + n * hidden;
      for (int64_t k = 0; k < hidden; ++k) {
        for (char gate : {'i', 'f', 'o'}) a[at(gate) + k] = Sigmoid(a[at(gate) + k]);
        a[at('g') + k] = std::tanh(a[at('g') + k]);
        cell[k] = a[at('f') + k] * c[n * hidden + k] + a[at('i') + k] * a[at('g') + k];
        y[k] = a[at('o') + k] * std::tanh(cell[k]);
      }
    }
    h = out[0] + state;
    c = out[1] + state;
  }
}

}  // namespace

OpDef LstmDef() {
  return {
      .name = "lstm",
      .doc =
          "One layer and direction over all steps: i, f, o = sigmoid and g = tanh of the blocks of "
          "projected[t] + h r^T; c = f * c + i * g; h = o * tanh(c); y[t] = h, cells[t] = c. "
          "projected [T,N,4H] is the input's product with its weight plus the biases; r [4H,H]; h "
          "and c [N,H] before the first step. gates names the blocks of projected and r in order. "
          "reverse=1 goes from the last step to the first. activated [T,N,4H] is kept for the "
          "gradient.",
      .input_names = {"projected", "r", "h", "c"},
      .output_names = {"y", "cells", "activated"},
      .attr_defaults = {{"gates", "ifgo"}, {"reverse", 0}},
      .cost_class = CostClass::kMatmul,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .in_place = {{2, 0}},
      .recompute = Recompute::kExpensive,
      .onnx = {"LSTM", 7, 22},
      .axes = RecurrentAxes,
      .reference = Reference,
  };
}

}  // namespace ridge
