#include "ridge/data/sound/fft.h"

#include <cmath>
#include <numbers>

#include "ridge/data/sound/fft_passes.h"

namespace ridge {
namespace {

int64_t NextRadix(int64_t rest) {
  if (rest % 4 == 0) return 4;
  for (int64_t radix = 2; radix * radix <= rest; ++radix) {
    if (rest % radix == 0) return radix;
  }
  return rest;
}

// exp(-2 pi i k / n)
void AddRoot(int64_t k, int64_t n, std::vector<double>& to) {
  const double angle = -2 * std::numbers::pi * static_cast<double>(k % n) / static_cast<double>(n);
  to.push_back(std::cos(angle));
  to.push_back(std::sin(angle));
}

}  // namespace

RealFft::RealFft(int64_t length)
    : length_(length), complex_(length % 2 == 0 ? length / 2 : length) {
  int64_t stride = 1;
  for (int64_t left = complex_; left > 1;) {
    const int64_t radix = NextRadix(left);
    FftStage stage{radix, left / radix, stride, static_cast<int64_t>(twiddles_.size()), 0};
    for (int64_t p = 0; p < stage.rest; ++p) {
      for (int64_t j = 0; j < radix; ++j) AddRoot(j * p, left, twiddles_);
    }
    stage.roots = static_cast<int64_t>(twiddles_.size());
    for (int64_t j = 0; j < radix; ++j) AddRoot(j, radix, twiddles_);
    stages_.push_back(stage);
    left /= radix;
    stride *= radix;
  }
  split_ = static_cast<int64_t>(twiddles_.size());
  for (int64_t k = 0; length % 2 == 0 && k <= complex_; ++k) AddRoot(k, length, twiddles_);
}

void RealFft::Power(const double* signals, double* scratch, double* power) const {
  RunFft({&stages_, twiddles_.data(), complex_, length_, twiddles_.data() + split_}, signals,
         scratch, power);
}

}  // namespace ridge
