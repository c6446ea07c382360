// The gradient of batch normalization, which its whole form and its parts share.
#pragma once
#include <span>

#include "ridge/graph/op_def.h"

namespace ridge {

// x, scale, mean, var, dy and, with relu=1 and only then, input `shift`: x and dy float [B,C,...],
// the others [C].
Status CheckNormGradInputs(const OpCall& call, size_t shift);

// One channel of a call: n is (x - mean) / sqrt(var + epsilon); dy is 0 where relu cuts it.
class NormGradChannel {
 public:
  NormGradChannel(const OpCall& call, std::span<const double* const> in, size_t shift,
                  int64_t channel);

  double dy(int64_t i) const {
    const bool cut = shift_ != nullptr && !((x_[i] - mean_) * slope_ + *shift_ > 0);
    return cut ? 0 : dy_[i];
  }
  // What element i adds to dscale: dy * n.
  double dscale(int64_t i) const { return dy(i) * (x_[i] - mean_) * rstd_; }
  // From the sums over `count` elements.
  double dx(int64_t i, double dscale, double dshift, double count) const {
    const double n = (x_[i] - mean_) * rstd_;
    return slope_ * (dy(i) - dshift / count - n * dscale / count);
  }

 private:
  const double *x_, *dy_;
  double mean_, rstd_, slope_;
  const double* shift_ = nullptr;
};

}  // namespace ridge
