// Nodes that compute a classifier's accuracy.
#pragma once
#include "ridge/graph/builder.h"
#include "ridge/learn/training_graph.h"

namespace ridge {

// Accuracy by sample, f32[batch]: 1 where the largest logit (the first of equals) is the label's,
// else 0.  A sample with several labels (pixels, words) counts as the share of its correct ones.
// logits [batch, ..., classes], label integer [batch, ...].
Value IsCorrect(GraphBuilder& b, Value logits, Value label);

// By sample, without labels equal to `ignored`.
struct LabelHits {
  Value right;    // f32[batch]: counted labels that the largest logit matches
  Value counted;  // f32[batch]: counted labels
};
LabelHits CountHits(GraphBuilder& b, Value logits, Value label, int64_t ignored);

// f32[]: the number of correct samples in the batch; with ignored labels, the share of correct ones
// among the counted labels, times the batch.
Value CorrectSamples(GraphBuilder& b, const ForwardInfo& facts);

}  // namespace ridge
