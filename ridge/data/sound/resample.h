// Resampler: another number of samples a second, by a windowed sinc, as torchaudio's resample
// ("sinc_interp_hann", width 6, roll-off 0.99).
//
// With from and to divided by their greatest divisor, base = 0.99 min(from, to) and
// t = base (i / from - m / to):
//   out[m] = sum over i of in[i] (base / from) sinc(t) cos(pi t / 12)^2,   |t| < 6
// What lies beyond both ends is 0.  Weights are f32, sums f64.
//
// Source: J. O. Smith, "Digital audio resampling", https://ccrma.stanford.edu/~jos/resample/.
#pragma once
#include <cstdint>
#include <vector>

namespace ridge {

struct FrameRange {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
};

// Thread-safe.
class Resampler {
 public:
  // Keeps its weights when they take at most `most_bytes`, else computes each when it is needed:
  // the same bits, slowly.
  Resampler(int64_t from, int64_t to, int64_t most_bytes);

  bool is_copy() const { return from_ == to_; }
  int64_t bytes() const { return static_cast<int64_t>(weights_.size() * sizeof(float)); }

  int64_t OutputCount(int64_t input_count) const;  // rounded up
  FrameRange InputOf(FrameRange output) const;     // may begin below 0 and reach beyond the end

  // `in` holds the samples of `range`; those beyond it count as 0.
  void Run(const float* in, FrameRange range, FrameRange output, float* out) const;

 private:
  float Weight(int64_t phase, int64_t tap) const;
  int64_t FirstTap(int64_t phase) const;

  int64_t from_, to_;  // without common divisors
  double base_, half_width_;
  int64_t taps_;
  std::vector<float> weights_;  // [to, taps]; empty: too many
};

}  // namespace ridge
