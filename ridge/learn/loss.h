// WithLoss: the loss that `--loss` asks for, at the end of a forward graph.
//
//   cross_entropy:OUTPUT  input `label` (i64): mean of -log(softmax(OUTPUT)[label]) over the
//                         labels that are not -100
//   mse:OUTPUT            input `target`: mean of (OUTPUT - target)^2
//   bce:OUTPUT            input `target` in [0, 1]: mean of -t log(p) - (1 - t) log(1 - p),
//                         p = sigmoid(OUTPUT)
//   OUTPUT                an output of the model that is one float
//
// Where OUTPUT is made by softmax or log_softmax (over the classes), or by sigmoid, the loss reads
// what goes into that node: the same function, without the loss of precision.  Any other OUTPUT
// counts as logits.  The loss is f64 for f64 outputs, else f32.
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

// "mse:y"; a text without one of these words in front is an output's name, colons and all.
// Fails with kInvalidArgument when no output is named.
Result<LossSpec> ParseLoss(const std::string& text);

// The graph with an output `loss`.  `loss` empty: the output `loss`, else the only output that is
// one float.  `fields` are those of the data (empty: not known); the shape of the label among them
// says which dimension of OUTPUT has the classes: dimension 1 ([B,C], [B,C,H,W]) or the last
// ([B,T,V]).  Without data it is the last of three dimensions, else dimension 1.
// Fails with kInvalidArgument: no such output, or one that the loss cannot read; the message lists
// the outputs and the options to write.
Result<Graph> WithLoss(Graph forward, const std::string& loss,
                       const std::vector<Field>& fields = {});

}  // namespace ridge
