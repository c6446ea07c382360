#include "ridge/learn/mixed_labels.h"

#include <fmt/format.h>

#include <algorithm>

namespace ridge {
namespace {

// The cross entropy of the logits and the label.
const Node* FindCrossEntropyOf(const Graph& graph, const ForwardInfo& facts) {
  const auto found = std::find_if(graph.nodes().begin(), graph.nodes().end(), [&](const Node& n) {
    return n.op->name == "softmax_cross_entropy" && n.inputs[0] == facts.logits &&
           n.inputs[1] == facts.label;
  });
  return found == graph.nodes().end() ? nullptr : &*found;
}

// The mean over samples and classes of -log(softmax).
Value Spread(GraphBuilder& b, const ForwardInfo& facts, DType dtype) {
  const Value logits = Cast(b.At(facts.logits), dtype);
  return -Mean(Op("log_softmax", {logits}, {{"axis", -1}}));
}

}  // namespace

Status CannotMix(const Graph& forward) {
  return Status(ErrorCode::kInvalidArgument,
                fmt::format("{}: --augment mixup and cutmix need a loss that is the mean cross "
                            "entropy of one class a sample",
                            forward.name));
}

Result<Value> MixedLoss(GraphBuilder& b, const ForwardInfo& facts, double smoothing) {
  const bool classifier = facts.logits != kNoValue && facts.loss_is_cross_entropy;
  if (!classifier || facts.ignored_label) return CannotMix(b.graph());
  const Node* node = FindCrossEntropyOf(b.graph(), facts);
  const TensorType label = b.graph().type(facts.label);
  if (node == nullptr || label.rank() != 1) return CannotMix(b.graph());
  const AttrMap attrs = node->attrs;
  const Value mine = b.At(node->outputs[0]);
  const Value other =
      Op("softmax_cross_entropy", {b.At(facts.logits), b.Input(kOtherLabelInput, label)}, attrs);
  const Value weight = Cast(b.Input(kLabelWeightInput, {DType::kF32, label.dims}), mine.dtype());
  Value loss = Mean(weight * mine + (1.0 - weight) * other);
  if (smoothing > 0) loss = loss * (1 - smoothing) + Spread(b, facts, mine.dtype()) * smoothing;
  RIDGE_RETURN_IF_ERROR(b.status());
  return Cast(loss, b.graph().type(facts.loss).dtype);
}

}  // namespace ridge
