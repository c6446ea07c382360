#include "ridge/data/sound_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ridge/core/rounding.h"
#include "ridge/data/batch_spec.h"
#include "ridge/data/picture_options.h"
#include "ridge/data/sound/mel.h"

namespace ridge {
namespace {

constexpr int64_t kMostValues = int64_t{1} << 28;  // of one sample
constexpr double kMostSeconds = 3600;

template <typename T>
std::optional<T> ParseWhole(const std::string& value, T least, T most) {
  T number{};
  const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool whole = error == std::errc() && rest == value.data() + value.size();
  if (!whole || !(number >= least && number <= most)) return std::nullopt;
  return number;
}

struct NumberKey {
  const char* key;
  std::optional<int64_t> SoundOptions::*number;
  int64_t least, most;
};
constexpr NumberKey kNumbers[] = {
    {"rate", &SoundOptions::rate, 1, kMostSoundRate},
    {"mels", &SoundOptions::mels, 1, kMostMels},
    {"fft", &SoundOptions::fft, 2, kMostFft},
    {"window", &SoundOptions::window, 1, kMostFft},
    {"hop", &SoundOptions::hop, 1, kMostFft},
};

struct FractionKey {
  const char* key;
  std::optional<double> SoundOptions::*number;
  double least, most;
};
constexpr FractionKey kFractions[] = {
    {"seconds", &SoundOptions::seconds, 1e-6, kMostSeconds},
    {"low", &SoundOptions::low, 0, kMostSoundRate},
    {"high", &SoundOptions::high, 0, kMostSoundRate},
};

struct NameKey {
  const char* key;
  const char* names;  // of the values, in messages
  bool (*take)(const std::string& value, SoundOptions& options);
};

bool TakeFeatures(const std::string& value, SoundOptions& options) {
  options.features = value == "wave"     ? SoundFeatures::kWave
                     : value == "logmel" ? SoundFeatures::kLogMel
                                         : SoundFeatures::kWhisper;
  return value == "wave" || value == "logmel" || value == "whisper";
}
bool TakeScale(const std::string& value, SoundOptions& options) {
  options.scale = value == "slaney" ? MelScale::kSlaney : MelScale::kHtk;
  return value == "slaney" || value == "htk";
}
bool TakeLevel(const std::string& value, SoundOptions& options) {
  options.level = value == "log" ? MelLevel::kLog : MelLevel::kDecibel;
  return value == "log" || value == "db";
}
bool TakeChannel(const std::string& value, SoundOptions& options) {
  options.channel = ParseWhole<int64_t>(value, 0, 63);
  if (value == "mean") options.channel = kMeanOfChannels;
  return options.channel.has_value();
}
bool TakeNormalize(const std::string& value, SoundOptions& options) {
  if (value.find(':') == std::string::npos && value != "none") return false;
  options.normalization = ParseNormalization(value);
  return options.normalization && options.normalization->mean.size() <= 1;
}

constexpr NameKey kNames[] = {
    {"features", "whisper, logmel or wave", TakeFeatures},
    {"mel", "htk or slaney", TakeScale},
    {"level", "db or log", TakeLevel},
    {"channel", "mean, or a number from 0 to 63", TakeChannel},
    {"normalize", "MEAN:STD or none", TakeNormalize},
};

// ---- the target

Status Refuse(const std::string& spec, const std::string& what) {
  return InvalidArgument(fmt::format("data '{}': {}", spec, what));
}

MelSettings WhisperMel() {
  MelSettings mel;
  mel.scale = MelScale::kSlaney;
  mel.level = MelLevel::kWhisper;
  return mel;
}

SoundTarget DefaultTarget() {
  SoundTarget target;
  target.mel = WhisperMel();
  return target;
}

Status CheckWhisper(const std::string& spec, const SoundOptions& options) {
  const bool others = options.fft || options.window || options.hop || options.low || options.high ||
                      options.scale || options.level;
  if (!others && options.rate.value_or(16000) == 16000) return Status();
  return Refuse(spec,
                "features=whisper has a rate of 16000, fft=400, hop=160, mel=slaney, 0 to 8000 Hz. "
                "hint: features=logmel");
}

Status CheckWave(const std::string& spec, const SoundOptions& options) {
  const bool mel = options.mels || options.fft || options.window || options.hop || options.low ||
                   options.high || options.scale || options.level;
  return mel ? Refuse(spec,
                      "features=wave has no spectrogram: mels, fft and their like say nothing")
             : Status();
}

// Which features, before their numbers.
void ChooseFeatures(const SoundOptions& options, SoundTarget& target) {
  if (!options.features) return;
  const bool is_whisper = target.mel && target.mel->level == MelLevel::kWhisper;
  if (options.features == SoundFeatures::kWave) {
    target.mel.reset();
  } else if (options.features == SoundFeatures::kWhisper) {
    if (!is_whisper) target.mel = WhisperMel();
    target.rate = 16000;
  } else if (!target.mel || is_whisper) {
    target.mel = MelSettings();
  }
}

void TakeMelNumbers(const SoundOptions& options, MelSettings& mel, int64_t rate) {
  if (options.rate || options.features) mel.high = static_cast<double>(rate / 2);
  if (options.fft) mel.window = *options.fft;
  mel.fft = options.fft.value_or(mel.fft);
  mel.window = options.window.value_or(mel.window);
  mel.hop = options.hop.value_or(mel.hop);
  mel.mels = options.mels.value_or(mel.mels);
  mel.low = options.low.value_or(mel.low);
  mel.high = options.high.value_or(mel.high);
  mel.scale = options.scale.value_or(mel.scale);
  mel.level = options.level.value_or(mel.level);
}

int64_t SamplesOf(double seconds, int64_t rate) {
  return std::max<int64_t>(1, std::llround(seconds * static_cast<double>(rate)));
}

// The model's input, extents of 1 aside: [mels, frames], or [samples].  False when it says nothing.
bool TakeModelInput(const SoundOptions& options, const DataOptions& data, SoundTarget& target) {
  const Field* input = FindFieldByName("features", data.model_inputs);
  if (input == nullptr && data.model_inputs.size() == 1) input = &data.model_inputs.front();
  if (input == nullptr) return false;
  Dims dims = input->type.dims;
  dims.erase(std::remove(dims.begin(), dims.end(), 1), dims.end());
  if (!target.mel && dims.size() == 1) target.samples = dims[0];
  if (target.mel && dims.size() == 2) {
    if (!options.mels) target.mel->mels = dims[0];
    const bool whisper = target.mel->level == MelLevel::kWhisper;
    target.samples = (whisper ? dims[1] : dims[1] - 1) * target.mel->hop;
  }
  return target.samples > 0;
}

void TakeLength(const SoundOptions& options, const DataOptions& data, double kept_seconds,
                const LongestSound& longest, SoundTarget& target) {
  if (options.seconds) {
    target.samples = SamplesOf(*options.seconds, target.rate);
  } else if (kept_seconds > 0) {
    target.samples = SamplesOf(kept_seconds, target.rate);
  } else if (!TakeModelInput(options, data, target)) {
    const double seconds = std::min(longest(), kMostSecondsByDefault);
    target.samples = SamplesOf(seconds > 0 ? seconds : 1, target.rate);
    if (target.mel) target.samples = RoundUp(target.samples, target.mel->hop);
  }
}

Status CheckTarget(const std::string& spec, const SoundTarget& target) {
  if (target.samples > kMostSoundSamples) {
    return Refuse(
        spec, fmt::format("{} seconds of {} samples are {}; at most {} are read", target.seconds(),
                          target.rate, target.samples, kMostSoundSamples));
  }
  if (target.mel) {
    const Status mel = CheckMel(*target.mel, target.rate, target.samples);
    if (!mel.ok()) return Refuse(spec, mel.message());
  }
  const int64_t values = target.type().elements();
  if (values <= kMostValues) return Status();
  return Refuse(spec,
                fmt::format("a sample has {} numbers, at most {} are made", values, kMostValues));
}

}  // namespace

const std::vector<std::string>& SoundKeys() {
  static const std::vector<std::string> keys = {"features", "rate",   "seconds",  "channel", "mels",
                                                "fft",      "window", "hop",      "low",     "high",
                                                "mel",      "level",  "normalize"};
  return keys;
}

Status TakeSoundOption(const std::string& spec, const std::string& key, const std::string& value,
                       SoundOptions& options) {
  const auto wrong = [&](const std::string& values) {
    return Refuse(spec, fmt::format("{} is '{}'; it must be {}", key, value, values));
  };
  for (const NumberKey& row : kNumbers) {
    if (key != row.key) continue;
    const auto number = ParseWhole<int64_t>(value, row.least, row.most);
    if (!number) return wrong(fmt::format("a whole number from {} to {}", row.least, row.most));
    options.*row.number = number;
  }
  for (const FractionKey& row : kFractions) {
    if (key != row.key) continue;
    const auto number = ParseWhole<double>(value, row.least, row.most);
    if (!number) return wrong(fmt::format("a number up to {}", row.most));
    options.*row.number = number;
  }
  for (const NameKey& row : kNames) {
    if (key == row.key && !row.take(value, options)) return wrong(row.names);
  }
  return Status();
}

Result<SoundTarget> PlanSounds(const std::string& spec, const SoundOptions& options,
                               const DataOptions& data, const LongestSound& longest) {
  const bool is_kept = data.preprocessing != nullptr && data.preprocessing->sounds;
  SoundTarget target = is_kept ? *data.preprocessing->sounds : DefaultTarget();
  const double kept_seconds = is_kept ? target.seconds() : 0;
  target.samples = 0;
  ChooseFeatures(options, target);
  if (!target.mel) {
    RIDGE_RETURN_IF_ERROR(CheckWave(spec, options));
  } else if (target.mel->level == MelLevel::kWhisper) {
    RIDGE_RETURN_IF_ERROR(CheckWhisper(spec, options));
  }
  target.rate = options.rate.value_or(target.rate);
  if (options.channel) target.channel = static_cast<int>(*options.channel);
  if (options.normalization) {
    const bool none = options.normalization->empty();
    target.mean = none ? 0 : options.normalization->mean[0];
    target.std = none ? 1 : options.normalization->std[0];
  }
  if (target.mel) TakeMelNumbers(options, *target.mel, target.rate);
  TakeLength(options, data, kept_seconds, longest, target);
  RIDGE_RETURN_IF_ERROR(CheckTarget(spec, target));
  return target;
}

Field SoundField(const SoundTarget& target) {
  return {target.mel ? "features" : "audio", target.type()};
}

std::vector<ModelSize> SoundSizes(const SoundTarget& target) {
  const int64_t values = target.type().elements();
  if (!target.mel) return {{"inputs", values}};
  const Dims dims = target.type().dims;
  return {{"image", dims[0]}, {"width", dims[1]}, {"channels", 1}, {"inputs", values}};
}

}  // namespace ridge
