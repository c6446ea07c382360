// gru: the steps of a gated recurrent unit; the input's product comes ready.
//
// Cho et al., 2014, in the form that cuDNN and PyTorch compute: the reset gate multiplies the
// candidate's product with the state, not the state, so one product a step does for all gates.
#include <cmath>

#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/sequence.h"
#include "ridge/graph/ops/shared/slice.h"

namespace ridge {
namespace {

// projected: float [T,N,3H].  r: [3H,H].  h: [N,H].  bias: [H].
// y: [T,N,H].  activated: [T,N,4H].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckSequence(call, 3));
  RIDGE_RETURN_IF_ERROR(CheckGates(call, "rzn"));
  const SequenceExtents e = SequenceExtentsOf(call, 0, 1);
  const DType dtype = call.inputs[0].dtype;
  if (call.has_input(3))
    RIDGE_RETURN_IF_ERROR(CheckType(call, 3, "bias", {dtype, {e.hidden}}, "the candidate's"));
  const TensorType activated{dtype, {e.seq_len, e.batch, 4 * e.hidden}};
  RIDGE_RETURN_IF_ERROR(CheckDims(activated.dims));
  return std::vector<TensorType>{{dtype, {e.seq_len, e.batch, e.hidden}}, activated};
}

// An element of a state: three exponentials of about 10, and 8 more.
Cost EstimateCost(const OpCall& call) {
  return SequenceCost(call, SequenceExtentsOf(call, 0, 1), 3, 38);
}

// The sum over steps and batch of the candidate's block of dinner.
Value BiasGrad(GradBuilder& g, Value dinner) {
  const int64_t hidden = g.x(3).dims()[0];
  const int64_t begin = GateAt(g.text("gates"), 'n') * hidden;
  const Value block = Slice(dinner, 2, begin, begin + hidden, 1);
  return Sum(block, {0, 1});
}

// dprojected, dinner, dh = gru_grad(r, h, y, activated, dy); dr = dinner^T h[t-1].
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  if (g.has_dy(1)) {
    b.Fail(Status(ErrorCode::kUnsupported,
                  "gru: output 'activated' has no gradient; it is kept for the gradient of y"));
    return;
  }
  const std::vector<Value> grads =
      OpOutputs("gru_grad", {g.x(1), g.x(2), g.y(), g.y(1), g.dy()}, g.attrs());
  if (!b.ok()) return;
  g.dx() = grads[0];
  if (g.needs_dx(1)) {
    g.dx(1) = RecurrentWeightGrad(b, grads[1], g.x(2), g.y(), g.integer("reverse") != 0);
  }
  g.dx(2) = grads[2];
  if (g.needs_dx(3)) g.dx(3) = BiasGrad(g, grads[1]);
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One row: px and inner have three blocks, a four: r, z, n, and what r multiplies.
void ComputeRow(const std::string& gates, int64_t hidden, const double* px, const double* inner,
                const double* bias, const double* before, double* a, double* y) {
  const int64_t at_r = GateAt(gates, 'r') * hidden, at_z = GateAt(gates, 'z') * hidden,
                at_n = GateAt(gates, 'n') * hidden;
  for (int64_t k = 0; k < hidden; ++k) {
    const double r = Sigmoid(px[at_r + k] + inner[at_r + k]);
    const double z = Sigmoid(px[at_z + k] + inner[at_z + k]);
    const double q = inner[at_n + k] + (bias == nullptr ? 0 : bias[k]);
    const double n = std::tanh(px[at_n + k] + r * q);
    a[k] = r;
    a[hidden + k] = z;
    a[2 * hidden + k] = n;
    a[3 * hidden + k] = q;
    y[k] = n + z * (before[k] - n);
  }
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const SequenceExtents e = SequenceExtentsOf(call, 0, 1);
  const double* bias = call.has_input(3) ? in[3] : nullptr;
  const double* h = in[2];
  std::vector<double> inner(static_cast<size_t>(3 * e.hidden));
  for (int64_t step = 0; step < e.seq_len; ++step) {
    const int64_t state = e.TimeAt(step) * e.StateElements();
    for (int64_t n = 0; n < e.batch; ++n) {
      const int64_t row = n * e.hidden;
      std::fill(inner.begin(), inner.end(), 0.0);
      AddInner(in[1], 3 * e.hidden, e.hidden, h + row, inner.data());
      ComputeRow(call.text("gates"), e.hidden, in[0] + (state + row) * 3, inner.data(), bias,
                 h + row, out[1] + (state + row) * 4, out[0] + state + row);
    }
    h = out[0] + state;
  }
}

}  // namespace

OpDef GruDef() {
  return {
      .name = "gru",
      .doc =
          "One layer and direction over all steps: with the blocks p of projected[t] and i of h "
          "r^T, reset = sigmoid(p + i), z = sigmoid(p + i), n = tanh(p + reset * (i + bias)); h = "
          "(1 - z) * n + z * h; y[t] = h. projected [T,N,3H] is the input's product with its "
          "weight plus the other biases; r [3H,H]; h [N,H] before the first step; bias [H]. gates "
          "names the blocks of projected and r in order: r is reset. reverse=1 goes from the last "
          "step to the first. activated [T,N,4H] (reset, z, n, i + bias) is kept for the gradient.",
      .input_names = {"projected", "r", "h", "bias?"},
      .output_names = {"y", "activated"},
      .attr_defaults = {{"gates", "rzn"}, {"reverse", 0}},
      .cost_class = CostClass::kMatmul,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .recompute = Recompute::kExpensive,
      .onnx = {"GRU", 7, 22},
      .axes = RecurrentAxes,
      .reference = Reference,
  };
}

}  // namespace ridge
