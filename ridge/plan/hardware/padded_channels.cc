#include "ridge/plan/hardware/padded_channels.h"

#include "ridge/core/rounding.h"
#include "ridge/plan/hardware/conv_workspaces.h"

namespace ridge {
namespace {

// With 4 channels of bf16 cuDNN 9.19.0 still copies.
constexpr int64_t kChannels = 8;

// [.., C, ...] with the channels at 1.
void Pad(Dims& dims) { dims[1] = RoundUp(dims[1], kChannels); }

}  // namespace

int64_t PaddedBytes(const TensorType& image) {
  TensorType padded = image;
  Pad(padded.dims);
  return padded.bytes();
}

std::optional<OpCall> PaddedCall(const OpDef& op, const OpCall& call) {
  if (op.name != "conv" && op.name != "conv_grad_weight") return std::nullopt;
  const ConvGeometry g = *AskedGeometry(op, call);
  const bool is_short = BytesPerElement(call.inputs[0].dtype) == 2;
  if (!is_short || g.groups != 1 || g.inputs() % kChannels == 0) return std::nullopt;
  OpCall padded = call;
  Pad(padded.inputs[0].dims);
  if (op.name == "conv") {
    Pad(padded.inputs[1].dims);
    return padded;
  }
  Pad(padded.outputs[0].dims);
  padded.attrs["weight_dims"] = padded.outputs[0].dims;
  return padded;
}

}  // namespace ridge
