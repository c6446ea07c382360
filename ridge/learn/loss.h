// WithLoss: appends the loss of `--loss` to a forward graph.
//
//   cross_entropy:OUTPUT  input `label` (i64): mean of -log(softmax(OUTPUT)[label]) over the
//                         labels that are not -100
//   mse:OUTPUT            input `target`: mean of (OUTPUT - target)^2
//   bce:OUTPUT            input `target` in [0, 1]: mean of -t log(p) - (1 - t) log(1 - p),
//                         p = sigmoid(OUTPUT)
//   OUTPUT                an output of the model that is one float
//
// If a softmax or log_softmax (over the classes) or a sigmoid produces OUTPUT, the loss reads that
// node's input: the same function, without the loss of precision.  Any other OUTPUT counts as
// logits.  The loss is f64 for f64 outputs, else f32.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/data/source.h"
#include "ridge/graph/graph.h"

namespace ridge {

enum class LossKind { kOutput, kCrossEntropy, kMse, kBce };

struct LossSpec {
  LossKind kind = LossKind::kOutput;
  std::string output;
};

// "mse:y"; a text without such a prefix is an output's name, which may contain colons.
// Fails with kInvalidArgument when no output is named.
Result<LossSpec> ParseLoss(const std::string& text);

// The graph with an output `loss`.  `loss` empty: the output `loss`, else the only output that is
// one float.  `fields` are those of the data (empty: not known); the label's shape determines which
// dimension of OUTPUT holds the classes: dimension 1 ([B,C], [B,C,H,W]) or the last ([B,T,V]).
// Without data it is the last of three dimensions, else dimension 1.
// Fails with kInvalidArgument: no such output, or one that the loss cannot read; the message lists
// the outputs and possible options.
Result<Graph> WithLoss(Graph forward, const std::string& loss,
                       const std::vector<Field>& fields = {});

}  // namespace ridge
