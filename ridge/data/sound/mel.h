// LogMel: a sound to the logarithm of its mel spectrogram, f32[mels, frames].
//
// Frame f is |FFT(hann window of the samples f hop - fft/2 to f hop + fft/2)|^2, the sound mirrored
// at its ends; each mel is a triangle of its frequencies.  All in f64 up to the last step.
//
//   torchaudio: MelSpectrogram(rate, n_fft, win_length, hop_length, f_min, f_max, n_mels), with
//     norm and mel_scale "slaney" for MelScale::kSlaney; then AmplitudeToDB() for kDecibel, or
//     ln(x + 1e-6) for kLog, as its MFCC(log_mels=True) has it.
//   whisper: WhisperFeatureExtractor: no last frame, log10(max(x, 1e-10)), at least the largest -
//   8,
//     (x + 4) / 4.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/data/sound/fft.h"
#include "ridge/data/sound/sound_target.h"

namespace ridge {

// Thread-safe.
class LogMel {
 public:
  // REQUIRES: CheckMel(settings, rate, samples).
  LogMel(const MelSettings& settings, int64_t rate, int64_t samples);

  int64_t scratch_bytes() const;
  int64_t bytes() const;  // that it keeps

  // `samples`: as many as the constructor says; `out`: [mels, frames].  REQUIRES: scratch_bytes(),
  // aligned for vectors of doubles, in `scratch`.
  void Run(const float* samples, std::span<char> scratch, float* out) const;

 private:
  // What frequencies of a frame a mel is the weighted sum of.
  struct Triangle {
    int64_t first = 0, count = 0, weights = 0;  // at weights_[weights]
  };
  void AddTriangles(int64_t rate);
  void TakeFrames(const float* samples, int64_t frame, int64_t count, double* lanes) const;
  void SumTriangles(const double* power, int64_t count, float* out) const;
  void Level(float* out) const;

  MelSettings settings_;
  int64_t samples_, frames_;
  RealFft fft_;
  std::vector<double> window_;
  std::vector<Triangle> triangles_;
  std::vector<double> weights_;
};

// Fails with kInvalidArgument; the message is the bare reason.
Status CheckMel(const MelSettings& settings, int64_t rate, int64_t samples);

// [bins, mels], bins = fft/2+1: what the triangles are made of, for tests too.
std::vector<double> MelTriangles(const MelSettings& settings, int64_t rate);

}  // namespace ridge
