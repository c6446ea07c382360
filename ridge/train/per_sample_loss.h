// The loss of each sample, found in a graph whose loss is a mean over the batch.
#pragma once
#include "ridge/graph/builder.h"

namespace ridge {

// A value [batch] whose mean is `loss`, built from the parts of `loss`:
//   reduce_mean(x), reduce_sum(x)   over all axes, where x's first dimension is the batch
//   a + b, a - b, -a, reshape, cast
//   a * c, a / c, c                 where c depends on no input (such as a weight penalty)
// So an evaluation counts each sample once even when the last batch is padded.
// Fails with kUnsupported and names the node that is none of these.
Result<Value> PerSampleLoss(GraphBuilder& b, Value loss, int64_t batch);

}  // namespace ridge
