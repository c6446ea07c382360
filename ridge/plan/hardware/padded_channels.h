// Images whose channels are padded with zeros to what matrix units read.
//
// cuDNN copies such an image in the workspace of each kernel that reads it; as a layout of its own
// it is copied once for all of them.
#pragma once
#include <cstdint>
#include <optional>

#include "ridge/graph/op_def.h"

namespace ridge {

// Bytes of an image [B,C,...] whose channels are padded.
int64_t PaddedBytes(const TensorType& image);

// A convolution or a gradient of its weights on a padded image: the call as cuDNN is asked about
// it.  None for other operators, for operands of f32, whose images cuDNN copies whatever their
// channels are, for groups, and where nothing would be padded.
std::optional<OpCall> PaddedCall(const OpDef& op, const OpCall& call);

}  // namespace ridge
