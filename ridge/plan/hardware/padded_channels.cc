#include "ridge/plan/hardware/padded_channels.h"

#include "ridge/core/rounding.h"
#include "ridge/plan/hardware/conv_workspaces.h"

namespace ridge {
namespace {

// Of whose multiples cuDNN 9.19.0 reads images as they are.
int64_t Multiple(DType dtype) { return dtype == DType::kF16 ? 4 : 8; }

void Pad(TensorType& type) { type.dims[1] = RoundUp(type.dims[1], Multiple(type.dtype)); }

}  // namespace

int64_t PaddedBytes(const TensorType& image) {
  TensorType padded = image;
  Pad(padded);
  return padded.bytes();
}

std::optional<OpCall> PaddedCall(const OpDef& op, const OpCall& call) {
  if (op.name != "conv" && op.name != "conv_grad_weight") return std::nullopt;
  const ConvGeometry g = *AskedGeometry(op, call);
  const DType dtype = call.inputs[0].dtype;
  if (BytesPerElement(dtype) != 2 || g.groups != 1 || g.inputs() % Multiple(dtype) == 0)
    return std::nullopt;
  OpCall padded = call;
  Pad(padded.inputs[0]);
  if (op.name == "conv") {
    Pad(padded.inputs[1]);
    return padded;
  }
  Pad(padded.outputs[0]);
  padded.attrs["weight_dims"] = padded.outputs[0].dims;
  return padded;
}

}  // namespace ridge
