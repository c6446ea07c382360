#include "ridge/data/points/point_transforms.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>

#include "ridge/core/split.h"
#include "ridge/data/image/transforms/transform.h"

namespace ridge {
namespace {

// numbers: the axis, 0 to 2, and degrees.
void RotatePoints(const PointNumbers& numbers, TransformDraws& draws, int64_t count,
                  float* points) {
  const double angle = draws.Uniform(-numbers[1], numbers[1]) * std::numbers::pi / 180;
  const auto sine = static_cast<float>(std::sin(angle));
  const auto cosine = static_cast<float>(std::cos(angle));
  const auto axis = static_cast<int>(numbers[0]);
  const int u = (axis + 1) % 3, v = (axis + 2) % 3;
  for (float* point = points; point != points + 3 * count; point += 3) {
    const float along = point[u], across = point[v];
    point[u] = cosine * along - sine * across;
    point[v] = sine * along + cosine * across;
  }
}

// Two normal numbers from two words (Box and Muller, 1958).
std::array<double, 2> TwoNormals(TransformDraws& draws) {
  const double radius = std::sqrt(-2 * std::log((draws.Word() + 0.5) * 0x1p-32));
  const double angle = 2 * std::numbers::pi * (draws.Word() + 0.5) * 0x1p-32;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

// numbers: deviation, most.
void JitterPoints(const PointNumbers& numbers, TransformDraws& draws, int64_t count,
                  float* points) {
  for (int64_t i = 0; i < 3 * count; i += 2) {
    const std::array<double, 2> normals = TwoNormals(draws);
    for (int64_t k = 0; k < std::min<int64_t>(2, 3 * count - i); ++k) {
      const double step =
          std::clamp(numbers[0] * normals[static_cast<size_t>(k)], -numbers[1], numbers[1]);
      points[i + k] += static_cast<float>(step);
    }
  }
}

void ScalePoints(const PointNumbers& numbers, TransformDraws& draws, int64_t count, float* points) {
  const auto factor = static_cast<float>(draws.Uniform(numbers[0], numbers[1]));
  for (int64_t i = 0; i < 3 * count; ++i) points[i] *= factor;
}

void ShiftPoints(const PointNumbers& numbers, TransformDraws& draws, int64_t count, float* points) {
  float shift[3];
  for (float& along : shift) along = static_cast<float>(draws.Uniform(-numbers[0], numbers[0]));
  for (int64_t i = 0; i < 3 * count; ++i) points[i] += shift[i % 3];
}

void DropPoints(const PointNumbers& numbers, TransformDraws& draws, int64_t count, float* points) {
  const double share = draws.Uniform(0, numbers[0]);
  for (int64_t i = 0; i < count; ++i) {
    if (draws.Chance(share)) std::copy_n(points, 3, points + 3 * i);
  }
}

struct Range {
  double least = 0, most = 0, by_default = 0;
};

struct PointTransform {
  const char* name;
  size_t count;  // numbers
  std::array<Range, 2> ranges;
  PointAugmentation::Apply3 apply;
};
constexpr PointTransform kTransformsOfPoints[] = {
    {"rotate", 2, {Range{0, 2, 1}, Range{0, 180, 180}}, RotatePoints},
    {"jitter", 2, {Range{0, 10, 0.01}, Range{0, 10, 0.05}}, JitterPoints},
    {"scale", 2, {Range{0.001, 1000, 0.8}, Range{0.001, 1000, 1.25}}, ScalePoints},
    {"shift", 1, {Range{0, 1000, 0.1}, Range{}}, ShiftPoints},
    {"drop", 1, {Range{0, 1, 0.875}, Range{}}, DropPoints},
};

const PointTransform* FindTransform(std::string_view name) {
  for (const PointTransform& transform : kTransformsOfPoints) {
    if (name == transform.name) return &transform;
  }
  return nullptr;
}

Result<double> ParseNumber(std::string_view name, std::string_view text, const Range& range) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && rest == text.data() + text.size() && number >= range.least &&
      number <= range.most)
    return number;
  return InvalidArgument(
      fmt::format("'{}' of {} must be from {} to {}", text, name, range.least, range.most));
}

Result<PointNumbers> ParseNumbers(const PointTransform& transform,
                                  const std::vector<std::string_view>& words) {
  PointNumbers numbers = {transform.ranges[0].by_default, transform.ranges[1].by_default};
  for (size_t i = 1; i < words.size(); ++i) {
    if (transform.apply == RotatePoints && i == 1) {
      const size_t axis = words[i].size() == 1 ? std::string_view("xyz").find(words[i]) : 3;
      if (axis > 2)
        return InvalidArgument(fmt::format("rotate is about x, y or z, not '{}'", words[i]));
      numbers[0] = static_cast<double>(axis);
      continue;
    }
    RIDGE_ASSIGN_OR_RETURN(numbers[i - 1],
                           ParseNumber(transform.name, words[i], transform.ranges[i - 1]));
  }
  if (transform.apply == ScalePoints && numbers[0] > numbers[1])
    return InvalidArgument(fmt::format("scale is from {} to {}; the first must not be larger",
                                       numbers[0], numbers[1]));
  return numbers;
}

}  // namespace

Result<PointAugmentation> PointAugmentation::Parse(const std::string& text, uint64_t seed) {
  PointAugmentation augmentation;
  for (const std::string_view part : SplitAt(text, ',')) {
    const std::vector<std::string_view> words = SplitAt(part, ':');
    if (part == "draw") {
      if (augmentation.draws_ || !augmentation.stages_.empty())
        return InvalidArgument("draw must come first, and once");
      augmentation.draws_ = true;
      augmentation.draw_key_ = {seed, StableHash("augment points draw")};
      continue;
    }
    const PointTransform* transform = FindTransform(words[0]);
    if (transform == nullptr || words.size() > transform->count + 1)
      return InvalidArgument(fmt::format("'{}' is none of {}", part, kPointTransforms));
    Stage stage;
    stage.apply = transform->apply;
    RIDGE_ASSIGN_OR_RETURN(stage.numbers, ParseNumbers(*transform, words));
    const auto before =
        std::count_if(augmentation.stages_.begin(), augmentation.stages_.end(),
                      [&](const Stage& other) { return other.apply == stage.apply; });
    stage.key = {seed, StableHash(fmt::format("augment points {} {}", words[0], before))};
    augmentation.stages_.push_back(stage);
  }
  return augmentation;
}

CropDraw PointAugmentation::Draw(int64_t epoch, int64_t sample) const {
  CropDraw draw;
  draw.key = draw_key_;
  draw.key.step = static_cast<uint32_t>(epoch);
  draw.sample = sample;
  return draw;
}

void PointAugmentation::Apply(int64_t epoch, int64_t sample, int64_t count, float* points) const {
  for (const Stage& stage : stages_) {
    RandomKey key = stage.key;
    key.step = static_cast<uint32_t>(epoch);
    TransformDraws draws(key, sample);
    stage.apply(stage.numbers, draws, count, points);
  }
}

}  // namespace ridge
