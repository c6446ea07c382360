// Layouts of tensors on a GPU.
//
// A tensor [N, C, H, W] in channels-last is the row-major array [N, H, W, C].
#pragma once
#include <span>
#include <string>
#include <vector>

#include "ridge/graph/op_def.h"
#include "ridge/lower/kernel_query.h"

namespace ridge::cuda {

// [N, C, ...] stored as [N, ..., C]; of tensors with 3 to 5 dimensions.  Weights of convolutions
// too: [out, in, ...] is stored as [out, ..., in].
inline constexpr LayoutId kChannelsLast = 1;

// Whether the layouts of such a tensor differ in their bytes.  A tensor of one channel or of one
// position has the same in both, and may be read as either.
bool HasLayouts(const TensorType& type);

// The layout of an operand of a kernel for channels-last.
LayoutId ChannelsLastOf(const TensorType& type);

// Of so many dimensions, in the order in which channels-last has them in memory: 0, 2, 3, 1.
std::vector<size_t> ChannelsLastOrder(int rank);
// Where dimension `d` comes in it.
int ChannelsLastPlace(int d, int rank);
// A tensor in channels-last as a row-major array.  REQUIRES: 3 to 5 dimensions.
TensorType StoredChannelsLast(const TensorType& type);

std::string LayoutNameOf(LayoutId layout);  // "row_major", "channels_last"

// Whether an input is at hand in channels-last, and not in row-major too.
bool AnyChannelsLast(const OpCall& call, std::span<const LayoutId> available);
// Whether the choice is for operands in channels-last.
bool IsChannelsLast(const OpCall& call, const KernelChoice& choice);

// Operands with the same bytes in both layouts: inputs as they are at hand, outputs row-major, so
// that nothing copies them.
void TakeEitherLayout(const OpCall& call, std::span<const LayoutId> available,
                      KernelChoice& choice);

}  // namespace ridge::cuda
