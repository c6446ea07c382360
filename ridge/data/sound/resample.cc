// Output m = j to + p reads inputs j from + k: the weights depend on the phase p and the tap k
// alone.
#include "ridge/data/sound/resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "ridge/core/rounding.h"

namespace ridge {
namespace {

constexpr double kZeroCrossings = 6, kRollOff = 0.99;

}  // namespace

Resampler::Resampler(int64_t from, int64_t to, int64_t most_bytes)
    : from_(from / std::gcd(from, to)), to_(to / std::gcd(from, to)) {
  base_ = static_cast<double>(std::min(from_, to_)) * kRollOff;
  half_width_ = kZeroCrossings * static_cast<double>(from_) / base_;
  taps_ = RoundUp(2 * static_cast<int64_t>(std::ceil(half_width_)) + 1, 4);
  if (is_copy() || taps_ * to_ * static_cast<int64_t>(sizeof(float)) > most_bytes) return;
  weights_.resize(static_cast<size_t>(taps_ * to_));
  for (int64_t phase = 0; phase < to_; ++phase) {
    for (int64_t tap = 0; tap < taps_; ++tap)
      weights_[static_cast<size_t>(phase * taps_ + tap)] = Weight(phase, FirstTap(phase) + tap);
  }
}

int64_t Resampler::FirstTap(int64_t phase) const {
  const double center = static_cast<double>(phase * from_) / static_cast<double>(to_);
  return static_cast<int64_t>(std::floor(center - half_width_)) + 1;
}

float Resampler::Weight(int64_t phase, int64_t tap) const {
  const double out_time = static_cast<double>(phase) / static_cast<double>(to_);
  const double in_time = static_cast<double>(tap) / static_cast<double>(from_);
  double t = std::clamp((in_time - out_time) * base_, -kZeroCrossings, kZeroCrossings);
  const double window = std::pow(std::cos(t * std::numbers::pi / kZeroCrossings / 2), 2);
  t *= std::numbers::pi;
  const double sinc = t == 0 ? 1 : std::sin(t) / t;
  return static_cast<float>(sinc * window * (base_ / static_cast<double>(from_)));
}

int64_t Resampler::OutputCount(int64_t input_count) const {
  return is_copy() ? input_count : CeilDiv(input_count * to_, from_);
}

FrameRange Resampler::InputOf(FrameRange output) const {
  if (is_copy() || output.count() <= 0) return output;
  const int64_t last = output.end - 1;
  return {output.begin / to_ * from_ + FirstTap(output.begin % to_),
          last / to_ * from_ + FirstTap(last % to_) + taps_};
}

void Resampler::Run(const float* in, FrameRange range, FrameRange output, float* out) const {
  if (is_copy()) {
    for (int64_t m = output.begin; m < output.end; ++m)
      *out++ = m >= range.begin && m < range.end ? in[m - range.begin] : 0.0F;
    return;
  }
  for (int64_t m = output.begin; m < output.end; ++m) {
    const int64_t phase = m % to_, tap = FirstTap(phase);
    const int64_t first = m / to_ * from_ + tap;
    const int64_t begin = std::max(first, range.begin);
    const int64_t end = std::min(first + taps_, range.end);
    const float* weights = weights_.empty() ? nullptr : weights_.data() + phase * taps_;
    double even = 0, odd = 0;
    for (int64_t i = begin; i < end; ++i) {
      const float weight = weights != nullptr ? weights[i - first] : Weight(phase, tap + i - first);
      double& sum = (i - first) % 2 == 0 ? even : odd;
      sum += static_cast<double>(in[i - range.begin]) * static_cast<double>(weight);
    }
    *out++ = static_cast<float>(even + odd);
  }
}

}  // namespace ridge
