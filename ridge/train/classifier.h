// Nodes that count what a classifier got right.
#pragma once
#include "ridge/graph/builder.h"

namespace ridge {

// 1 where the largest logit (the first of equals) is the label's, 0 elsewhere: f32[batch].  A
// sample with several labels (pixels, words) counts by the share of those that are right. logits
// [batch, ..., classes], label integer [batch, ...].
Value Hits(GraphBuilder& b, Value logits, Value label);

}  // namespace ridge
