#include "ridge/graph/ops/shared/norm_grad_channel.h"

#include <cmath>

#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/norm.h"

namespace ridge {
namespace {

constexpr size_t kDy = 4;

}  // namespace

Status CheckNormGradInputs(const OpCall& call, size_t shift) {
  RIDGE_RETURN_IF_ERROR(CheckChannels(call));
  RIDGE_RETURN_IF_ERROR(CheckPerChannel(call, 1, "scale"));
  RIDGE_RETURN_IF_ERROR(CheckPerChannel(call, 2, "mean"));
  RIDGE_RETURN_IF_ERROR(CheckPerChannel(call, 3, "var"));
  RIDGE_RETURN_IF_ERROR(CheckType(call, kDy, "dy", call.inputs[0], "the type of x"));
  if (call.has_input(shift)) RIDGE_RETURN_IF_ERROR(CheckPerChannel(call, shift, "shift"));
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "relu"));
  if ((call.integer("relu") == 1) == call.has_input(shift)) return Status();
  return CallError(call, "shift is read with relu=1 and only then");
}

NormGradChannel::NormGradChannel(const OpCall& call, std::span<const double* const> in,
                                 size_t shift, int64_t channel)
    : x_(in[0]),
      dy_(in[kDy]),
      mean_(in[2][channel]),
      rstd_(1 / std::sqrt(in[3][channel] + call.number("epsilon"))),
      slope_(in[1][channel] * rstd_),
      shift_(call.integer("relu") != 0 ? &in[shift][channel] : nullptr) {}

}  // namespace ridge
