#include "ridge/graph/ops/shared/ctc_lattice.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ridge/graph/ops/shared/cross_entropy.h"

namespace ridge {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A number that a reference holds as a double, from 0 to `max`.
bool InRange(double x, int64_t max) { return x >= 0 && x <= static_cast<double>(max); }

}  // namespace

CtcLattice::CtcLattice(const CtcShape& shape, std::span<const double* const> in, int64_t sample)
    : shape_(shape), logits_(in[0] + sample * shape.frames * shape.classes) {
  const double *targets = in[1] + sample * shape.targets, frames = in[2][sample],
               count = in[3][sample];
  if (!InRange(frames, shape.frames) || !InRange(count, shape.targets)) return;
  frames_ = static_cast<int64_t>(frames);
  labels_.assign(2 * static_cast<size_t>(count) + 1, shape.blank);
  for (size_t i = 1; i < labels_.size(); i += 2) {
    if (!InRange(targets[i / 2], shape.classes - 1)) return;
    labels_[i] = static_cast<int64_t>(targets[i / 2]);
  }
  for (int64_t t = 0; t < frames_; ++t)
    log_sums_.push_back(LogSumExp(logits_ + t * shape.classes, shape.classes));
  valid_ = true;
}

double CtcLattice::LogProb(int64_t frame, int64_t label) const {
  return logits_[frame * shape_.classes + label] - log_sums_[static_cast<size_t>(frame)];
}

bool CtcLattice::Skips(int64_t state) const {
  const auto s = static_cast<size_t>(state);
  return s % 2 == 1 && s >= 3 && labels_[s] != labels_[s - 2];
}

std::vector<double> CtcLattice::Alpha() const {
  std::vector<double> alpha(static_cast<size_t>(frames_ * states()), -kInfinity);
  const auto before = [&](int64_t t, int64_t s) {
    if (t == 0) return s <= 1 ? 0.0 : -kInfinity;
    const double* row = alpha.data() + (t - 1) * states();
    return LogAdd(row[s], s >= 1 ? row[s - 1] : -kInfinity, Skips(s) ? row[s - 2] : -kInfinity);
  };
  for (int64_t t = 0; t < frames_; ++t) {
    for (int64_t s = 0; s < states(); ++s) {
      alpha[static_cast<size_t>(t * states() + s)] =
          before(t, s) + LogProb(t, labels_[static_cast<size_t>(s)]);
    }
  }
  return alpha;
}

std::vector<double> CtcLattice::Beta() const {
  std::vector<double> beta(static_cast<size_t>(frames_ * states()), -kInfinity);
  // What follows when frame t is in state s, its emission included.
  const auto from = [&](int64_t t, int64_t s) {
    if (s >= states()) return -kInfinity;
    return beta[static_cast<size_t>(t * states() + s)] +
           LogProb(t, labels_[static_cast<size_t>(s)]);
  };
  for (int64_t t = frames_ - 1; t >= 0; --t) {
    for (int64_t s = 0; s < states(); ++s) {
      const bool skips = s + 2 < states() && Skips(s + 2);
      beta[static_cast<size_t>(t * states() + s)] =
          t == frames_ - 1
              ? (s >= states() - 2 ? 0 : -kInfinity)
              : LogAdd(from(t + 1, s), from(t + 1, s + 1), skips ? from(t + 1, s + 2) : -kInfinity);
    }
  }
  return beta;
}

double CtcLattice::Loss(const std::vector<double>& alpha) const {
  if (frames_ == 0) return states() == 1 ? 0 : kInfinity;
  const double* last = alpha.data() + (frames_ - 1) * states();
  const double before_last = states() > 1 ? last[states() - 2] : -kInfinity;
  return 0 - LogAdd(last[states() - 1], before_last, -kInfinity);
}

double CtcLattice::Loss() const { return valid_ ? Loss(Alpha()) : kNaN; }

void CtcLattice::Gradient(double* dlogits) const {
  const int64_t size = frames_ * shape_.classes, all = shape_.frames * shape_.classes;
  std::fill_n(dlogits, all, valid_ ? 0 : kNaN);
  if (!valid_) return;
  const std::vector<double> alpha = Alpha(), beta = Beta();
  const double loss = Loss(alpha);
  if (!std::isfinite(loss)) {
    std::fill_n(dlogits, size, kNaN);
    return;
  }
  for (int64_t t = 0; t < frames_; ++t) {
    double* row = dlogits + t * shape_.classes;
    for (int64_t k = 0; k < shape_.classes; ++k) row[k] = std::exp(LogProb(t, k));
    for (int64_t s = 0; s < states(); ++s) {
      const auto at = static_cast<size_t>(t * states() + s);
      row[labels_[static_cast<size_t>(s)]] -= std::exp(alpha[at] + beta[at] + loss);
    }
  }
}

}  // namespace ridge
