// slice, expand, reshape and bit_cast: each word of y is one of x, at a place that strides tell.
#include <algorithm>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/cuda/kernels/move_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/graph/ops/shared/slice.h"

namespace ridge::cuda {
namespace {

StridedMove MoveOf(const OpDef& op, const OpCall& call) {
  const Dims &x = call.inputs[0].dims, &y = call.outputs[0].dims;
  if (op.name == "expand") return {y, BroadcastStrides(x, y), RowMajorStrides(y)};
  if (op.name == "slice") {
    const SliceView view = ViewSlice(*AxisSlices(call, x), x);
    return {y, view.strides, RowMajorStrides(y), view.base, 0};
  }
  return {y, RowMajorStrides(y), RowMajorStrides(y)};
}

const char* WriteMoveOf(const OpDef& op, const OpCall& call, KernelText& text) {
  const TensorType &x = call.inputs[0], &y = call.outputs[0];
  WriteMove(MoveOf(op, call), BytesPerElement(y.dtype), std::max(x.elements(), y.elements()), text);
  return nullptr;
}

// The same between the arrays as they are stored.
const char* WriteMoveChannelsLast(const OpDef& op, const OpCall& call, KernelText& text) {
  const TensorType &x = call.inputs[0], &y = call.outputs[0];
  if (!HasLayouts(x) || x.rank() != y.rank()) return refusal::kLayout;
  const Dims from = StoredChannelsLast(x).dims, to = StoredChannelsLast(y).dims;
  StridedMove move{to, {}, RowMajorStrides(to)};
  if (op.name == "slice") {
    const std::vector<AxisSlice> ranges = *AxisSlices(call, x.dims);
    std::vector<AxisSlice> stored;
    for (const size_t d : ChannelsLastOrder(x.rank())) stored.push_back(ranges[d]);
    const SliceView view = ViewSlice(stored, from);
    move.from = view.strides;
    move.from_first = view.base;
  } else if (op.name == "expand") {
    move.from = BroadcastStrides(from, to);
  } else {
    return refusal::kLayout;
  }
  WriteMove(move, BytesPerElement(y.dtype), std::max(x.elements(), y.elements()), text);
  return nullptr;
}

}  // namespace

TextKernelDef MoveTextKernel() {
  return {.name = "cuda.move",
          .ops = {"slice", "expand", "reshape", "bit_cast"},
          .write = WriteMoveOf,
          .write_channels_last = WriteMoveChannelsLast};
}

}  // namespace ridge::cuda
