// rnn: the steps of a simple recurrent network; the input's product comes ready.
//
// Elman, 1990.
#include <algorithm>
#include <cmath>

#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/sequence.h"

namespace ridge {
namespace {

// projected: float [T,N,H].  r: [H,H].  h: [N,H].  y: [T,N,H].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckSequence(call, 1));
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "relu"));
  return std::vector<TensorType>{call.inputs[0]};
}

Cost EstimateCost(const OpCall& call) {
  return SequenceCost(call, SequenceExtentsOf(call, 0, 1), 1, 11);
}

// dprojected, dh = rnn_grad(r, y, dy); dr = dprojected^T h[t-1].
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const std::vector<Value> grads = OpOutputs("rnn_grad", {g.x(1), g.y(), g.dy()}, g.attrs());
  if (!b.ok()) return;
  g.dx() = grads[0];
  if (g.needs_dx(1)) {
    g.dx(1) = RecurrentWeightGrad(b, grads[0], g.x(2), g.y(), g.integer("reverse") != 0);
  }
  g.dx(2) = grads[1];
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const SequenceExtents e = SequenceExtentsOf(call, 0, 1);
  const bool relu = call.integer("relu") != 0;
  const double* h = in[2];
  for (int64_t step = 0; step < e.seq_len; ++step) {
    const int64_t state = e.TimeAt(step) * e.StateElements();
    double* y = out[0] + state;
    std::copy_n(in[0] + state, e.StateElements(), y);
    for (int64_t row = 0; row < e.StateElements(); row += e.hidden)
      AddInner(in[1], e.hidden, e.hidden, h + row, y + row);
    for (int64_t k = 0; k < e.StateElements(); ++k)
      y[k] = relu ? std::max(y[k], 0.0) : std::tanh(y[k]);
    h = y;
  }
}

}  // namespace

OpDef RnnDef() {
  return {
      .name = "rnn",
      .doc =
          "One layer and direction over all steps: h = tanh(projected[t] + h r^T), or relu of it "
          "with relu=1; y[t] = h. projected [T,N,H] is the input's product with its weight plus "
          "the biases; r [H,H]; h [N,H] before the first step. reverse=1 goes from the last step "
          "to the first.",
      .input_names = {"projected", "r", "h"},
      .output_names = {"y"},
      .attr_defaults = {{"relu", 0}, {"reverse", 0}},
      .cost_class = CostClass::kMatmul,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kExpensive,
      .onnx = {"RNN", 7, 22},
      .axes = RecurrentAxes,
      .reference = Reference,
  };
}

}  // namespace ridge
