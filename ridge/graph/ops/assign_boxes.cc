// assign_boxes: which true box each place of a detector is taught, and how much (box_assignment.h).
//
// Targets are constants of a loss: no gradient flows through them.
#include <fmt/format.h>

#include <vector>

#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/box_assignment.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge {
namespace {

constexpr int64_t kMostPlacesEach = 1 << 16;
constexpr double kMostPower = 1 << 10;

// scores: float [B,A,C].  boxes: [B,A,4].  anchors: [A,2].  true_boxes: [B,N,4].
// true_classes: i64 [B,N].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType &scores = call.inputs[0], &truths = call.inputs[3];
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "scores"));
  if (scores.rank() != 3) {
    return CallError(call, fmt::format("scores is {}; it must be [batch, places, classes]",
                                       TypeToString(scores)));
  }
  const DType dtype = scores.dtype;
  const int64_t batch = scores.dims[0], places = scores.dims[1];
  const TensorType boxes = {dtype, {batch, places, 4}};
  RIDGE_RETURN_IF_ERROR(CheckType(call, 1, "boxes", boxes, "x1, y1, x2, y2 of each place"));
  RIDGE_RETURN_IF_ERROR(CheckType(call, 2, "anchors", {dtype, {places, 2}}, "x, y of each place"));
  const int64_t count = truths.rank() >= 2 ? truths.dims[1] : 0;
  RIDGE_RETURN_IF_ERROR(CheckType(call, 3, "true_boxes", {dtype, {batch, count, 4}},
                                  "x1, y1, x2, y2 of each true box"));
  RIDGE_RETURN_IF_ERROR(CheckType(call, 4, "true_classes", {DType::kI64, {batch, count}},
                                  "the class of each true box"));
  if (const int64_t k = call.integer("k"); k < 1 || k > kMostPlacesEach)
    return CallError(call, fmt::format("k is {}; it must be from 1 to {}", k, kMostPlacesEach));
  RIDGE_RETURN_IF_ERROR(CheckNumber(call, "alpha", kMostPower));
  RIDGE_RETURN_IF_ERROR(CheckNumber(call, "beta", kMostPower));
  return std::vector<TensorType>{boxes, scores};
}

// Each place is compared with each true box, and about 64 flops tell an overlap.
Cost EstimateCost(const OpCall& call) {
  constexpr int64_t kCompare = 8, kOverlap = 64;
  const TensorType &scores = call.inputs[0], &truths = call.inputs[3];
  const int64_t pairs = scores.dims[1] * truths.dims[0] * truths.dims[1];
  return StreamingCost(call, pairs * kCompare + scores.dims[0] * scores.dims[1] * kOverlap);
}

Axes Batch(const OpCall& call) { return {Mapped(call, {0, 0, Factor::kNone, 0, 0}, 0)}; }

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const AssignmentSizes sizes(call);
  std::vector<double> workspace(static_cast<size_t>(sizes.workspace_numbers()));
  BoxAssigner<double, double> assigner(sizes, in[2], workspace);
  const int64_t places = sizes.places, truths = sizes.truths, scores = places * sizes.classes;
  for (int64_t b = 0; b < call.inputs[0].dims[0]; ++b) {
    assigner.Run(in[0] + b * scores, in[1] + b * places * 4, in[3] + b * truths * 4,
                 in[4] + b * truths, out[0] + b * places * 4, out[1] + b * scores);
  }
}

}  // namespace

OpDef AssignBoxesDef() {
  return {
      .name = "assign_boxes",
      .doc =
          "Targets of a detector's places: target_boxes [B,A,4], the true box (x1, y1, x2, y2) "
          "that "
          "a place is taught, and target_scores [B,A,C], how well it already fits, in the class of "
          "that box; both 0 for other places. A true box of a class in [0, C) takes the k places "
          "of "
          "largest scores^alpha * overlap^beta among those whose anchors [A,2] lie in it, where "
          "overlap is the complete IoU of boxes [B,A,4] and true_boxes [B,N,4]; a place that "
          "several "
          "take goes to the largest overlap.",
      .input_names = {"scores", "boxes", "anchors", "true_boxes", "true_classes"},
      .output_names = {"target_boxes", "target_scores"},
      .attr_defaults = {{"k", 10}, {"alpha", 0.5}, {"beta", 6.0}},
      .cost_class = CostClass::kReduce,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .no_gradient_inputs = {0, 1, 2, 3, 4},
      .axes = Batch,
      .reference = Reference,
  };
}

}  // namespace ridge
