// CtcLattice: the forward-backward recursion of one sample in plain loops, for the references.
//
// Graves et al. 2006, "Connectionist Temporal Classification", in log space.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ridge/graph/ops/shared/ctc.h"

namespace ridge {

class CtcLattice {
 public:
  // Sample `sample` of a call's inputs.
  CtcLattice(const CtcShape& shape, std::span<const double* const> in, int64_t sample);

  // False for a length outside its range or a counted target that is no class.
  bool valid() const { return valid_; }
  // -log of the sum over alignments of their probability; inf when there is none, NaN if not valid.
  double Loss() const;
  // dloss / dlogits [T,C]: softmax less the share of alignments that emit the class in this frame.
  // 0 beyond the sample's frames; NaN in them where the loss is not finite, everywhere if not
  // valid.
  void Gradient(double* dlogits) const;

  int64_t frames() const { return frames_; }

 private:
  int64_t states() const { return static_cast<int64_t>(labels_.size()); }
  double LogProb(int64_t frame, int64_t label) const;
  // The state may be reached from the one two before it.
  bool Skips(int64_t state) const;
  // [frames][states]: log of the sum over the beginnings of alignments that are in the state, this
  // frame's emission included; over their ends, it excluded.
  std::vector<double> Alpha() const;
  std::vector<double> Beta() const;
  double Loss(const std::vector<double>& alpha) const;

  CtcShape shape_;
  const double* logits_;  // (T, C)
  int64_t frames_ = 0;
  bool valid_ = false;
  std::vector<int64_t> labels_;   // of the states
  std::vector<double> log_sums_;  // log(sum(exp(logits))) of each frame
};

}  // namespace ridge
