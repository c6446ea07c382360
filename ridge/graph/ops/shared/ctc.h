// What ctc_loss, its gradient and their kernels share.
//
// A sample's states are blank, target 0, blank, target 1, .. blank: 2 L + 1 of them.  An alignment
// is a state a frame, from one of the first two to one of the last two; each step stays, goes to
// the next state, or skips a blank between two different targets.
#pragma once
#include "ridge/graph/op_def.h"

namespace ridge {

struct CtcShape {
  int64_t batch, frames, classes, targets, blank;
  bool zero_infinity;

  int64_t max_states() const { return 2 * targets + 1; }
};

// Inputs are logits, float [B,T,C]; targets [B,L], logit_lengths [B] and target_lengths [B], each
// i64 or i32; attributes are `blank` and `zero_infinity`.
Status CheckCtc(const OpCall& call);
AttrMap CtcAttrDefaults();

// REQUIRES: the call passed CheckCtc.
CtcShape CtcShapeOf(const OpCall& call);

// For each logit a softmax, for each frame and state three terms of a sum of exponentials.
int64_t CtcFlops(const OpCall& call);

// log(exp(a) + exp(b) + exp(c)); -inf stands for 0.
double LogAdd(double a, double b, double c);

}  // namespace ridge
