// Nodes that count what a classifier got right.
#pragma once
#include "ridge/graph/builder.h"

namespace ridge {

// 1 where the largest logit (the first of equals) is the label's, 0 elsewhere: f32[batch].
// logits [batch, classes], label integer [batch].
Value Hits(GraphBuilder& b, Value logits, Value label);

}  // namespace ridge
