// Layouts of tensors on a GPU.
#pragma once
#include "ridge/lower/kernel_query.h"

namespace ridge::cuda {

// [N, C, ...] stored as [N, ..., C]; of tensors with 3 to 5 dimensions.  Weights of convolutions
// too: [out, in, ...] is stored as [out, ..., in].
inline constexpr LayoutId kChannelsLast = 1;

}  // namespace ridge::cuda
