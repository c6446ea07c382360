// ctc_loss: -log of the sum over alignments of targets to frames of their probability.
//
// The recursion is in log space, so no number of frames underflows.  The mean over samples, and
// division by the lengths of targets, are left to the graph.
#include <algorithm>
#include <cmath>

#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/ctc_lattice.h"

namespace ridge {
namespace {

// logits: float [B,T,C].  targets: [B,L].  logit_lengths, target_lengths: [B].  losses: [B], f64
// for f64, else f32.
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckCtc(call));
  const TensorType& logits = call.inputs[0];
  return std::vector<TensorType>{{StatisticDType(logits.dtype), {logits.dims[0]}}};
}

Cost EstimateCost(const OpCall& call) { return StreamingCost(call, CtcFlops(call)); }

// dlogits = (softmax(logits) - share of alignments) * dlosses.
void Gradient(GradBuilder& g) {
  g.dx() = Op("ctc_loss_grad", {g.x(), g.x(1), g.x(2), g.x(3), g.dy()}, g.attrs());
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const CtcShape shape = CtcShapeOf(call);
  for (int64_t sample = 0; sample < shape.batch; ++sample) {
    const double loss = CtcLattice(shape, in, sample).Loss();
    out[0][sample] = shape.zero_infinity && std::isinf(loss) ? 0 : loss;
  }
}

Axes FindAxes(const OpCall& call) { return {Mapped(call, {0, 0, 0, 0}, 0)}; }

}  // namespace

OpDef CtcLossDef() {
  return {
      .name = "ctc_loss",
      .doc =
          "The loss of connectionist temporal classification: for each sample of logits [B,T,C], "
          "before softmax, -log of the sum over alignments of targets [B,L] to its first "
          "logit_lengths[b] frames of their probability, losses [B] in f32 (f64 for f64). Of "
          "targets the first target_lengths[b] count; class `blank` separates them. Targets that "
          "fit no alignment have loss inf, or with zero_infinity=1 loss and gradient 0. A length "
          "out of range, or a counted target outside [0, C), gives NaN.",
      .input_names = {"logits", "targets", "logit_lengths", "target_lengths"},
      .output_names = {"losses"},
      .attr_defaults = CtcAttrDefaults(),
      .cost_class = CostClass::kReduce,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .no_gradient_inputs = {1, 2, 3},
      .axes = FindAxes,
      .reference = Reference,
  };
}

}  // namespace ridge
