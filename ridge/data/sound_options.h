// SoundOptions: what a user says of sounds behind a path: "sounds,seconds=2,features=logmel".
//
// What the user says comes first, then what the run keeps whose preprocessing is repeated, then the
// model's input, the files and the defaults.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ridge/data/sound/sound_target.h"
#include "ridge/data/source.h"

namespace ridge {

enum class SoundFeatures { kWave, kLogMel, kWhisper };

struct SoundOptions {
  std::optional<SoundFeatures> features;
  std::optional<int64_t> rate, channel, mels, fft, window, hop;
  std::optional<double> seconds, low, high;
  std::optional<MelScale> scale;
  std::optional<MelLevel> level;
  std::optional<PixelNormalization> normalization;  // one mean, one deviation; empty: none
};

// The keys that TakeSoundOption knows.
const std::vector<std::string>& SoundKeys();

// Fails with kInvalidArgument for a wrong value; `spec` is for messages.
Status TakeSoundOption(const std::string& spec, const std::string& key, const std::string& value,
                       SoundOptions& options);

// Seconds of the longest sound, for targets whose length nothing else says.
using LongestSound = std::function<double()>;
inline constexpr double kMostSecondsByDefault = 30;

// Fails with kInvalidArgument for options that don't fit together.
Result<SoundTarget> PlanSounds(const std::string& spec, const SoundOptions& options,
                               const DataOptions& data, const LongestSound& longest);

// `features` f32[mels, frames], or `audio` f32[samples].
Field SoundField(const SoundTarget& target);

// A model's height and width, or its inputs.
std::vector<ModelSize> SoundSizes(const SoundTarget& target);

}  // namespace ridge
