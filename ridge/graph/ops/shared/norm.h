// What batch and layer normalization share.
//
// Scales, shifts and statistics have StatisticDType(x): f32 also when x is f16 or bf16.
#pragma once
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/axis_view.h"
#include "ridge/graph/pattern.h"

namespace ridge {

// Input 0, x, is float [B,C,...].
Status CheckChannelDims(const OpCall& call);
// And `epsilon` is a finite number of at least 0.
Status CheckChannels(const OpCall& call);

// Input i holds one number for each channel of x: [C].
Status CheckPerChannel(const OpCall& call, size_t i, const char* name);

// Mean and biased variance (the mean of the squared distances from the mean); zeros for nothing.
struct Moments {
  double mean = 0;
  double variance = 0;
};
// Of x[o, channel, i] over all o and i.
Moments ChannelMoments(const double* x, const AxisView& view, int64_t channel);

// Calls visit(index) for x[o, channel, i] over all o and i.
template <typename Visit>
void ForEachInChannel(const AxisView& view, int64_t channel, Visit visit) {
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t i = 0; i < view.inner; ++i) visit(view.Index(o, channel, i));
  }
}

// Elements behind one statistic, at least 1, so that it can divide.
int64_t ElementsPerChannel(const Dims& x);

// Gradient nodes.  `v` [C], in x's dtype, as [1,C,1,...] to broadcast over x.
Value OverChannels(Value v, Value x);
// v [B,C,...] summed over all but the channels: [C] in the dtype of statistics.
Value SumOverAllButChannels(Value v);

// dims[0, axis), and dims[axis, rank).
Dims LeadingDims(const Dims& dims, int axis);
Dims TrailingDims(const Dims& dims, int axis);

// layer_norm or rms_norm in primitive nodes (norm_pattern.cc).
PatternMatch MatchNorm(const Graph& graph, const Node& root);

}  // namespace ridge
