// What the reductions share: axes, types, the walk, and the way back of the gradient.
//
// Attributes: axes (list; empty means all; negative counts from the end), keep_dims (1 leaves
// reduced dimensions with extent 1, 0 drops them).
#pragma once
#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/elementwise.h"
#include "ridge/graph/ops/shared/strided.h"

namespace ridge {

// Whether the operator has one input and the attributes above; of a single element each gives that
// element.
bool IsReduction(const OpDef& op);

// For each dimension of the input whether it is reduced.  Fails on a bad or repeated axis.
Result<std::vector<bool>> ReducedAxes(const OpCall& call);

// The dims of the input with 1 at the reduced places.  REQUIRES: the axes were checked.
Dims KeptDims(const OpCall& call);
Dims KeptDims(const Dims& dims, const std::vector<int64_t>& axes);

// How many elements fall on one output.
int64_t ReducedWidth(const Dims& dims, const std::vector<int64_t>& axes);

// What a reduction gives that has nothing to reduce.
enum class EmptyAxis { kDefined, kRefused };

Result<std::vector<TensorType>> ReduceTypes(const OpCall& call, Operands operands, EmptyAxis empty);

template <Operands kOperands, EmptyAxis kEmpty>
Result<std::vector<TensorType>> InferReduce(const OpCall& call) {
  return ReduceTypes(call, kOperands, kEmpty);
}

// The dimensions that stay; with those that are summed or averaged.
Axes KeptAxes(const OpCall& call);
Axes SummedAxes(const OpCall& call);
Axes AveragedAxes(const OpCall& call);
Axes MaximizedAxes(const OpCall& call);
Axes MinimizedAxes(const OpCall& call);

// One flop an input element.
Cost ReduceCost(const OpCall& call);

// out[o] = combine(...combine(start, x), ...) over the elements x that fall on o, in order.
template <typename Combine>
void Reduce(const OpCall& call, const double* in, double* out, double start, Combine combine) {
  const Dims& dims = call.inputs[0].dims;
  for (int64_t o = 0; o < call.outputs[0].elements(); ++o) out[o] = start;
  const Dims strides = BroadcastStrides(KeptDims(call), dims);
  ForEachStrided(dims, strides, 0, [&](int64_t i, int64_t o) { out[o] = combine(out[o], in[i]); });
}

// The place of the first largest of `count` elements that lie `stride` apart; NaN counts as
// largest. REQUIRES: count >= 1.
int64_t FirstLargest(const double* x, int64_t count, int64_t stride);

// The sum of x along `axes`, which are dropped, in a float type at least as wide as that of x: it
// is not rounded to x's on the way.
Value SumAs(Value x, const std::vector<int64_t>& axes, DType dtype);

// `v`, of the reduction's output shape, with the reduced dimensions back as 1.
Value WithKeptDims(GradBuilder& g, Value v);

// The types of reduce_max and reduce_min.
Result<std::vector<TensorType>> InferExtremum(const OpCall& call);

// Their gradient.  ties="share": dy / ties where x = y; ties="first": dy at the first of them along
// the one axis; 0 elsewhere.  `sign` is -1 for reduce_min.
Value ExtremumGrad(GradBuilder& g, int sign);

AttrMap ReduceAttrs();    // the defaults
AttrMap SumAttrs();       // with out_dtype
AttrMap ExtremumAttrs();  // with ties

}  // namespace ridge
