// The answer of a model that is trained by ctc_loss: the best class of each frame.
#pragma once
#include "ridge/graph/builder.h"

namespace ridge {

// i64 [B,T]: the largest logit (the first of equals) of each of a sample's first lengths[b] frames,
// `blank` behind them.  logits [B,T,C]; lengths integers [B].
Value BestClasses(GraphBuilder& b, Value logits, Value lengths, int64_t blank);

}  // namespace ridge
