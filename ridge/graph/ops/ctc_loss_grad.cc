// ctc_loss_grad: dlogits = (softmax(logits) - share of alignments) * dlosses.
//
// The share of a class in a frame is the part of all alignments, by probability, that emit it
// there. The recursion runs again: keeping it would hold 2 L + 1 numbers a frame until the backward
// pass.
#include <algorithm>
#include <cmath>

#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/ctc_lattice.h"

namespace ridge {
namespace {

// Inputs 0 to 3: as ctc_loss.  dlosses: [B].  dlogits: as logits.
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckCtc(call));
  const TensorType& logits = call.inputs[0];
  RIDGE_RETURN_IF_ERROR(CheckType(
      call, 4, "dlosses", {StatisticDType(logits.dtype), {logits.dims[0]}}, "what ctc_loss gives"));
  return std::vector<TensorType>{logits};
}

// The recursion in both directions, and a softmax.
Cost EstimateCost(const OpCall& call) { return StreamingCost(call, 2 * CtcFlops(call)); }

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const CtcShape shape = CtcShapeOf(call);
  const int64_t size = shape.frames * shape.classes;
  for (int64_t sample = 0; sample < shape.batch; ++sample) {
    double* dlogits = out[0] + sample * size;
    const CtcLattice lattice(shape, in, sample);
    if (shape.zero_infinity && std::isinf(lattice.Loss())) {
      std::fill_n(dlogits, size, 0.0);
      continue;
    }
    lattice.Gradient(dlogits);
    for (int64_t i = 0; i < size; ++i) dlogits[i] *= in[4][sample];
  }
}

Axes FindAxes(const OpCall& call) { return {Mapped(call, {0, 0, 0, 0, 0}, 0)}; }

}  // namespace

OpDef CtcLossGradDef() {
  return {
      .name = "ctc_loss_grad",
      .doc =
          "The gradient of logits [B,T,C] in ctc_loss: dlogits = (softmax(logits) - the share of "
          "alignments that emit the class in the frame) * dlosses [B]; 0 in frames beyond "
          "logit_lengths[b]. NaN where the loss is infinite (0 with zero_infinity=1) or not a "
          "number.",
      .input_names = {"logits", "targets", "logit_lengths", "target_lengths", "dlosses"},
      .output_names = {"dlogits"},
      .attr_defaults = CtcAttrDefaults(),
      .cost_class = CostClass::kReduce,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .no_gradient_inputs = {1, 2, 3},
      .in_place = {{0, 0}},
      .axes = FindAxes,
      .reference = Reference,
  };
}

}  // namespace ridge
