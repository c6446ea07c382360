// The ranges of slice and slice_grad.
//
// Attributes: axes (empty: 0, 1, ... as many as starts), starts, ends, steps (empty: 1).  As ONNX
// has it: negative starts and ends count from the end of the axis, both are then clamped, a
// negative step walks down, and an end below the axis' begin (-2^63) includes element 0.
#pragma once
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/op_def.h"

namespace ridge {

// Elements start, start + step, ... of one axis.
struct AxisSlice {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
};

AttrMap SliceAttrs();  // the defaults

// One range for each dimension of `dims`.
Result<std::vector<AxisSlice>> AxisSlices(const OpCall& call, const Dims& dims);

Dims SlicedDims(const std::vector<AxisSlice>& ranges);

// How the slice lies in an array of `dims`: its first element, and the strides between neighbours.
struct SliceView {
  int64_t base = 0;
  Dims strides;
};
SliceView ViewSlice(const std::vector<AxisSlice>& ranges, const Dims& dims);

}  // namespace ridge
