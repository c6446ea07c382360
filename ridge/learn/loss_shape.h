// WithLossShape: label smoothing, class weights, the focal loss and the Dice loss, for the mean of
// a cross entropy.
//
// With w the class weights (1 without them), W their sum, C classes and q the one-hot label:
//
//   row  = w[label] nll                                                  and, with smoothing e,
//   row  = ((1 - e) w[label] + e W / C) nll + e / C sum((W q - w) logits), as torch.nn.functional
//          .cross_entropy(weight=w, label_smoothing=e), whose sum of logarithms it is
//   row *= (1 - exp(-nll))^gamma                                         the focal loss
//   loss = sum(row) / sum(w[label]) over the labels that count; without weights the divisor stays
//
// With dice d, and labels of several places a sample (pixels), p = softmax(logits), and sums over
// the places of one sample that count:
//
//   dice = (2 sum(p q) + 1) / (sum(p) + sum(q) + 1)            by sample and class
//   loss = (1 - d) loss + d mean(1 - sum_c(w dice) / W)        the mean over samples
//
// as MONAI's DiceLoss(softmax=True, to_onehot_y=True, smooth_nr=1, smooth_dr=1).
//
// The divisor depends on labels alone, so slices of a batch divide by that of the whole batch.
// Evaluation keeps the plain mean of nll: output kEvalLossOutput, of the same one node of cross
// entropy.
#pragma once
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

// What an evaluation reads instead of `loss`, where a graph has it.
inline constexpr char kEvalLossOutput[] = "ridge.eval_loss";

struct LossShape {
  double label_smoothing = 0;         // in [0, 1)
  double focal_gamma = 0;             // 0: none
  double dice = 0;                    // share of the Dice loss, in [0, 1]
  std::vector<double> class_weights;  // by class; empty: none
  bool class_weights_come = false;    // SetClassWeights gives them; until then they are 1

  bool plain() const {
    return label_smoothing == 0 && focal_gamma == 0 && dice == 0 && class_weights.empty() &&
           !class_weights_come;
  }
};

// Fails with kInvalidArgument when the loss is not the mean of one cross entropy whose labels are
// an input, or when there are other than C weights, or for dice with one label a sample.
Result<Graph> WithLossShape(Graph forward, const LossShape& shape);

// REQUIRES: the graph has weights, C of them.
void SetClassWeights(const std::vector<double>& weights, Graph& graph);

}  // namespace ridge
