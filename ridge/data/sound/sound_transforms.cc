#include "ridge/data/sound/sound_transforms.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "ridge/core/split.h"
#include "ridge/data/image/transforms/transform.h"

namespace ridge {
namespace {

constexpr int64_t kMostMask = 100000, kMostMasks = 100;

Result<int64_t> ParseCount(std::string_view text, int64_t most) {
  int64_t count = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc() && rest == text.data() + text.size() && count >= 1 && count <= most)
    return count;
  return InvalidArgument(fmt::format("'{}' must be a whole number from 1 to {}", text, most));
}

}  // namespace

Result<SoundAugmentation> SoundAugmentation::Parse(const std::string& text, uint64_t seed) {
  SoundAugmentation augmentation;
  for (const std::string_view part : SplitAt(text, ',')) {
    const std::vector<std::string_view> words = SplitAt(part, ':');
    if (words[0] == "cut" && words.size() == 1) {
      if (augmentation.cuts() || augmentation.masks())
        return InvalidArgument("cut must come first, and once");
      augmentation.cuts_ = true;
      augmentation.cut_key_ = {seed, StableHash("augment sound cut")};
      continue;
    }
    Mask mask;
    mask.of_frames = words[0] == "timemask";
    if ((!mask.of_frames && words[0] != "freqmask") || words.size() > 3)
      return InvalidArgument(fmt::format("'{}' is none of {}", part, kSoundTransforms));
    mask.most = mask.of_frames ? 20 : 10;
    mask.count = 1;
    if (words.size() > 1) {
      RIDGE_ASSIGN_OR_RETURN(mask.most, ParseCount(words[1], kMostMask));
    }
    if (words.size() > 2) {
      RIDGE_ASSIGN_OR_RETURN(mask.count, ParseCount(words[2], kMostMasks));
    }
    const auto before =
        std::count_if(augmentation.masks_.begin(), augmentation.masks_.end(),
                      [&](const Mask& other) { return other.of_frames == mask.of_frames; });
    mask.key = {seed, StableHash(fmt::format("augment {} {}", words[0], before))};
    augmentation.masks_.push_back(mask);
  }
  return augmentation;
}

CropDraw SoundAugmentation::Cut(int64_t epoch, int64_t sample) const {
  CropDraw cut;
  cut.key = cut_key_;
  cut.key.step = static_cast<uint32_t>(epoch);
  cut.sample = sample;
  return cut;
}

void SoundAugmentation::Apply(const Dims& dims, int64_t epoch, int64_t sample,
                              float* values) const {
  if (masks_.empty()) return;
  const int64_t mels = dims[0], frames = dims[1];
  double sum = 0;
  for (int64_t i = 0; i < mels * frames; ++i) sum += static_cast<double>(values[i]);
  const auto mean = static_cast<float>(sum / static_cast<double>(mels * frames));
  for (const Mask& mask : masks_) {
    RandomKey key = mask.key;
    key.step = static_cast<uint32_t>(epoch);
    TransformDraws draws(key, sample);
    const int64_t extent = mask.of_frames ? frames : mels;
    for (int64_t n = 0; n < mask.count; ++n) {
      const int64_t width = draws.Below(std::min(mask.most, extent) + 1);
      const int64_t begin = draws.Below(extent - width + 1);
      for (int64_t m = 0; m < mels; ++m) {
        for (int64_t f = 0; f < frames; ++f) {
          const int64_t at = mask.of_frames ? f : m;
          if (at >= begin && at < begin + width) values[m * frames + f] = mean;
        }
      }
    }
  }
}

}  // namespace ridge
