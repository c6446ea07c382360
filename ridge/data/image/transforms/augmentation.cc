#include "ridge/data/image/transforms/augmentation.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ridge/core/split.h"
#include "ridge/data/image/transforms/box_moves.h"

namespace ridge {
namespace {

std::string Names() {
  std::string names;
  for (const PictureTransform& transform : PictureTransforms())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", transform.form);
  return names;
}

Result<const PictureTransform*> FindTransform(std::string_view name) {
  for (const PictureTransform& transform : PictureTransforms()) {
    if (transform.name == name) return &transform;
  }
  return InvalidArgument(fmt::format("'{}' is none of {}", name, Names()));
}

Status WrongNumber(const PictureTransform& transform, std::string_view text,
                   const NumberRange& range) {
  return InvalidArgument(fmt::format("'{}' in {} must be {} from {} to {}", text, transform.form,
                                     range.whole ? "a whole number" : "a number", range.least,
                                     range.most));
}

Result<double> ParseNumber(const PictureTransform& transform, std::string_view text,
                           const NumberRange& range) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool read = error == std::errc() && rest == text.data() + text.size();
  const bool inside = read && number >= range.least && number <= range.most;
  if (!inside || (range.whole && number != std::floor(number)))
    return WrongNumber(transform, text, range);
  return number;
}

// "crop:4" without its name.
Result<TransformNumbers> ParseNumbers(const PictureTransform& transform,
                                      const std::vector<std::string_view>& words) {
  const auto given = static_cast<int>(words.size()) - 1;
  if (given < transform.required || given > transform.count) {
    return InvalidArgument(
        fmt::format("{} has {} numbers; its form is {}", transform.name, given, transform.form));
  }
  TransformNumbers numbers{};
  for (int i = 0; i < transform.count; ++i) {
    const auto at = static_cast<size_t>(i);
    numbers[at] = transform.ranges[at].by_default;
    if (i >= given) continue;
    RIDGE_ASSIGN_OR_RETURN(numbers[at],
                           ParseNumber(transform, words[at + 1], transform.ranges[at]));
  }
  return numbers;
}

}  // namespace

Result<Augmentation> Augmentation::Parse(const std::string& text, uint64_t seed) {
  Augmentation augmentation;
  augmentation.mixing_.seed = seed;
  for (const std::string_view part : SplitAt(text, ',')) {
    const std::vector<std::string_view> words = SplitAt(part, ':');
    Stage stage;
    RIDGE_ASSIGN_OR_RETURN(stage.transform, FindTransform(words[0]));
    RIDGE_ASSIGN_OR_RETURN(stage.numbers, ParseNumbers(*stage.transform, words));
    if (stage.transform->mixes) {
      RIDGE_RETURN_IF_ERROR(augmentation.TakeMixing(*stage.transform, stage.numbers));
      continue;
    }
    if (stage.transform->apply == nullptr && !augmentation.stages_.empty())
      return InvalidArgument(fmt::format("{} must come first", stage.transform->name));
    const auto before =
        std::count_if(augmentation.stages_.begin(), augmentation.stages_.end(),
                      [&](const Stage& other) { return other.transform == stage.transform; });
    stage.key = {seed, StableHash(fmt::format("augment {} {}", stage.transform->name, before))};
    augmentation.stages_.push_back(stage);
  }
  return augmentation;
}

Status Augmentation::TakeMixing(const PictureTransform& transform,
                                const TransformNumbers& numbers) {
  const bool is_mixup = std::string_view(transform.name) == "mixup";
  double& alpha = is_mixup ? mixing_.mixup : mixing_.cutmix;
  if (alpha > 0) return InvalidArgument(fmt::format("{} comes twice", transform.name));
  alpha = numbers[0];
  return Status();
}

bool Augmentation::crops() const {
  return !stages_.empty() && stages_.front().transform->apply == nullptr;
}

CropDraw Augmentation::Crop(int64_t epoch, int64_t sample) const {
  const Stage& stage = stages_.front();
  CropDraw crop;
  crop.least_area = stage.numbers[0];
  crop.most_area = std::max(stage.numbers[0], stage.numbers[1]);
  crop.key = stage.key;
  crop.key.step = static_cast<uint32_t>(epoch);
  crop.sample = sample;
  return crop;
}

int64_t Augmentation::scratch_bytes(const PictureShape& shape) const {
  int64_t bytes = 0;
  for (const Stage& stage : stages_) {
    if (stage.transform->scratch_bytes != nullptr)
      bytes = std::max(bytes, stage.transform->scratch_bytes(shape, stage.numbers));
  }
  return bytes;
}

TransformDraws Augmentation::DrawsOf(const Stage& stage, int64_t epoch, int64_t sample) {
  RandomKey key = stage.key;
  key.step = static_cast<uint32_t>(epoch);
  return TransformDraws(key, sample);
}

void Augmentation::Apply(const PictureShape& shape, int64_t epoch, int64_t sample,
                         std::span<char> scratch, uint8_t* pixels) const {
  for (const Stage& stage : stages_) {
    if (stage.transform->apply == nullptr) continue;
    TransformDraws draws = DrawsOf(stage, epoch, sample);
    stage.transform->apply(shape, stage.numbers, draws, scratch, pixels);
  }
}

Status Augmentation::MovesBoxes() const {
  for (const Stage& stage : stages_) {
    if (FindBoxMove(*stage.transform) == nullptr)
      return InvalidArgument(fmt::format("{} moves no boxes; of pictures with boxes take {}",
                                         stage.transform->name, BoxMoveNames()));
  }
  if (!mixing_.any()) return Status();
  return InvalidArgument("mixup and cutmix mix labels; pictures with boxes have none");
}

void Augmentation::MoveBoxes(const PictureShape& shape, int64_t epoch, int64_t sample,
                             std::span<float> boxes) const {
  for (const Stage& stage : stages_) {
    TransformDraws draws = DrawsOf(stage, epoch, sample);
    FindBoxMove (*stage.transform)(shape, stage.numbers, draws, boxes);
  }
}

void Augmentation::ApplyToMask(const PictureShape& shape, int64_t epoch, int64_t sample,
                               std::span<char> scratch, uint8_t* ids) const {
  PictureShape mask = shape;
  mask.channels = 1;
  mask.erased = {};
  for (const Stage& stage : stages_) {
    if (stage.transform->apply_to_mask == nullptr) continue;
    TransformDraws draws = DrawsOf(stage, epoch, sample);
    stage.transform->apply_to_mask(mask, stage.numbers, draws, scratch, ids);
  }
}

}  // namespace ridge
