#include "ridge/graph/ops/shared/ctc.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "ridge/graph/ops/shared/checks.h"

namespace ridge {
namespace {

Status CheckCtcAttrs(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "zero_infinity"));
  const int64_t blank = call.integer("blank"), classes = call.inputs[0].dims[2];
  if (blank >= 0 && blank < classes) return Status();
  return CallError(
      call, fmt::format("blank is {}; it must be one of the {} classes of logits", blank, classes));
}

}  // namespace

Status CheckCtc(const OpCall& call) {
  const TensorType &logits = call.inputs[0], &targets = call.inputs[1];
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "logits"));
  if (logits.rank() != 3) {
    return CallError(call, fmt::format("logits is {}; it must be [batch, frames, classes]",
                                       TypeToString(logits)));
  }
  const int64_t batch = logits.dims[0];
  RIDGE_RETURN_IF_ERROR(CheckIndex(call, 1, "targets"));
  if (targets.rank() != 2 || targets.dims[0] != batch) {
    return CallError(call, fmt::format("targets is {}; it must be [{}, targets], as logits is {}",
                                       TypeToString(targets), batch, TypeToString(logits)));
  }
  const char* names[] = {"logit_lengths", "target_lengths"};
  for (size_t i = 0; i < 2; ++i) {
    RIDGE_RETURN_IF_ERROR(CheckIndex(call, 2 + i, names[i]));
    RIDGE_RETURN_IF_ERROR(CheckType(call, 2 + i, names[i], {call.inputs[2 + i].dtype, {batch}},
                                    "one length for each sample of logits"));
  }
  return CheckCtcAttrs(call);
}

AttrMap CtcAttrDefaults() { return {{"blank", 0}, {"zero_infinity", 0}}; }

CtcShape CtcShapeOf(const OpCall& call) {
  const Dims& logits = call.inputs[0].dims;
  return {.batch = logits[0],
          .frames = logits[1],
          .classes = logits[2],
          .targets = call.inputs[1].dims[1],
          .blank = call.integer("blank"),
          .zero_infinity = call.integer("zero_infinity") != 0};
}

int64_t CtcFlops(const OpCall& call) {
  const CtcShape shape = CtcShapeOf(call);
  return 4 * call.inputs[0].elements() + 8 * shape.batch * shape.frames * shape.max_states();
}

double LogAdd(double a, double b, double c) {
  if (a < b) std::swap(a, b);
  if (a < c) std::swap(a, c);
  if (!(a > -std::numeric_limits<double>::infinity())) return a + b + c;  // -inf, or NaN
  return a + std::log(1 + std::exp(b - a) + std::exp(c - a));
}

}  // namespace ridge
