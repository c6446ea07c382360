// SoundTarget: what every sound becomes before a model sees it.
#pragma once
#include <cstdint>
#include <optional>

#include "ridge/core/shape.h"

namespace ridge {

inline constexpr int64_t kMostSoundRate = 768000;               // samples a second
inline constexpr int64_t kMostSoundSamples = int64_t{1} << 27;  // of one sound, read or made
inline constexpr int kMostSoundChannels = 64;
inline constexpr int kMeanOfChannels = -1;

enum class MelScale { kHtk, kSlaney };
enum class MelLevel { kDecibel, kLog, kWhisper };

struct MelSettings {
  int64_t fft = 400, window = 400, hop = 160;  // samples
  int64_t mels = 80;
  double low = 0, high = 8000;  // Hz
  MelScale scale = MelScale::kHtk;
  MelLevel level = MelLevel::kDecibel;

  int64_t frames(int64_t samples) const {
    return samples / hop + (level == MelLevel::kWhisper ? 0 : 1);
  }
  bool operator==(const MelSettings&) const = default;
};

inline constexpr int64_t kMostFft = 1 << 14, kMostMels = 1024;

// What every sound becomes.
struct SoundTarget {
  int64_t rate = 16000;  // samples a second
  int64_t samples = 0;   // longer sounds are cut, shorter ones followed by zeros
  int channel = kMeanOfChannels;
  std::optional<MelSettings> mel;  // null: the samples themselves
  double mean = 0, std = 1;        // each value becomes (x - mean) / std

  TensorType type() const;  // f32[mels, frames], or f32[samples]
  double seconds() const { return static_cast<double>(samples) / static_cast<double>(rate); }
  bool operator==(const SoundTarget&) const = default;
};

}  // namespace ridge
