// PerSampleLoss: splits a loss that is a mean over the batch into the loss of each sample.
#pragma once
#include "ridge/graph/builder.h"

namespace ridge {

// Two values [batch]: the loss is sum(loss) / sum(weight).
struct SampleLosses {
  Value loss;
  Value weight;  // invalid: 1 for each sample
};

// Built from the parts of `loss`, which is a mean over the samples of:
//   reduce_mean(x), reduce_sum(x)   over all axes, where x's first dimension is the batch, or
//                                   the batch times the length that a reshape joined with it
//   a + b, a - b, -a, reshape, cast
//   a * c, a / c, c                 where c depends on no input (such as a weight penalty)
// or a / b of two such values, as with ignored labels: each sample's weight is then its part of b.
// b may be maximum(b, c), a guard against 0.  A term a / b of a sum, such as the mean of two
// losses, is divided by the weight of the current batch.
// An evaluation so counts each sample once even when the last batch is padded.
// Fails with kUnsupported and names the node that is none of these.
Result<SampleLosses> PerSampleLoss(GraphBuilder& b, Value loss, int64_t batch);

// Whether the loss is such an a / b.
bool IsWeightedMean(const Graph& graph, ValueId loss);

}  // namespace ridge
