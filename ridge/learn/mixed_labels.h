// MixedLoss: the loss of samples that are mixed of two classes (mixup, cutmix).
#pragma once
#include "ridge/graph/builder.h"
#include "ridge/learn/training_graph.h"

namespace ridge {

// mean(w * ce(logits, label) + (1 - w) * ce(logits, other)), with the inputs of
// TrainingGraphOptions::mixes_labels; with smoothing e, (1 - e) of it and e times
// mean(-log_softmax(logits)), as torch.nn.functional.cross_entropy smooths the mixed one-hot
// labels.  Fails as CannotMix unless the loss of the graph is mean(ce(logits, label)) with one
// label a sample.
Result<Value> MixedLoss(GraphBuilder& b, const ForwardInfo& facts, double smoothing);

Status CannotMix(const Graph& forward);

}  // namespace ridge
