// Nodes that count what a classifier got right.
#pragma once
#include "ridge/graph/builder.h"
#include "ridge/learn/training_graph.h"

namespace ridge {

// 1 where the largest logit (the first of equals) is the label's, 0 elsewhere: f32[batch].  A
// sample with several labels (pixels, words) counts by the share of those that are right. logits
// [batch, ..., classes], label integer [batch, ...].
Value Hits(GraphBuilder& b, Value logits, Value label);

// Where labels equal to `ignored` do not count.
struct LabelHits {
  Value right;    // f32[batch]: a sample's labels that count and that the largest logit hits
  Value counted;  // f32[batch]: a sample's labels that count
};
LabelHits CountHits(GraphBuilder& b, Value logits, Value label, int64_t ignored);

// f32[]: how many samples of the batch are right; with ignored labels, the share of right ones
// among those that count, times the batch.
Value CorrectSamples(GraphBuilder& b, const ForwardFacts& facts);

}  // namespace ridge
