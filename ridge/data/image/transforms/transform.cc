// The table, and what each row draws.
#include "ridge/data/image/transforms/transform.h"

#include <algorithm>
#include <utility>

#include "ridge/data/image/transforms/color.h"
#include "ridge/data/image/transforms/filters.h"
#include "ridge/data/image/transforms/rand_augment.h"
#include "ridge/data/image/transforms/random_box.h"

namespace ridge {
namespace {

using Shape = const PictureShape&;
using Numbers = const TransformNumbers&;
using Draws = TransformDraws&;
using Scratch = std::span<char>;

int64_t OneCopy(Shape shape, Numbers) { return shape.bytes(); }
int64_t BlurBytes(Shape shape, Numbers) { return BlurScratchBytes(shape); }

void Flip(Shape shape, Numbers numbers, Draws draws, Scratch, uint8_t* pixels) {
  if (draws.Chance(numbers[0])) FlipLeftRight(shape, pixels);
}

void FlipVertically(Shape shape, Numbers numbers, Draws draws, Scratch, uint8_t* pixels) {
  if (draws.Chance(numbers[0])) FlipTopBottom(shape, pixels);
}

void Crop(Shape shape, Numbers numbers, Draws draws, Scratch scratch, uint8_t* pixels) {
  const auto padding = static_cast<int64_t>(numbers[0]);
  const int64_t top = draws.Below(2 * padding + 1) - padding;
  Shift(shape, top, draws.Below(2 * padding + 1) - padding, scratch, pixels);
}

void RotateAtRandom(Shape shape, Numbers numbers, Draws draws, Scratch scratch, uint8_t* pixels) {
  Rotate(shape, draws.Uniform(-numbers[0], numbers[0]), scratch, pixels);
}

// Brightness, contrast, saturation and hue in a random order.
void Jitter(Shape shape, Numbers numbers, Draws draws, Scratch, uint8_t* pixels) {
  constexpr decltype(&AdjustHue) kAdjust[] = {AdjustBrightness, AdjustContrast, AdjustSaturation,
                                              AdjustHue};
  std::array<double, 4> factors{};
  for (size_t i = 0; i < 3; ++i)
    factors[i] = draws.Uniform(std::max(0.0, 1 - numbers[i]), 1 + numbers[i]);
  factors[3] = draws.Uniform(-numbers[3], numbers[3]);
  std::array<size_t, 4> order = {0, 1, 2, 3};
  for (size_t last = 3; last > 0; --last)
    std::swap(order[last], order[static_cast<size_t>(draws.Below(static_cast<int64_t>(last) + 1))]);
  for (const size_t i : order) {
    if (numbers[i] > 0) kAdjust[i](shape, factors[i], pixels);
  }
}

void Grey(Shape shape, Numbers numbers, Draws draws, Scratch, uint8_t* pixels) {
  if (draws.Chance(numbers[0])) MakeGrey(shape, pixels);
}

void BlurAtRandom(Shape shape, Numbers numbers, Draws draws, Scratch scratch, uint8_t* pixels) {
  const int64_t size = 2 * static_cast<int64_t>(numbers[0]) + 1;
  Blur(shape, size, draws.Uniform(numbers[1], std::max(numbers[1], numbers[2])), scratch, pixels);
}

void EraseAtRandom(Shape shape, Numbers numbers, Draws draws, Scratch, uint8_t* pixels) {
  if (draws.Chance(numbers[0])) Erase(shape, DrawErased(draws, shape.height, shape.width), pixels);
}

void RandOperations(Shape shape, Numbers numbers, Draws draws, bool moves_only, Scratch scratch,
                    uint8_t* pixels) {
  for (int i = 0; i < static_cast<int>(numbers[0]); ++i) {
    const auto operation = static_cast<RandOperation>(draws.Below(kRandOperations));
    const bool negative = draws.Below(2) == 1;
    if (moves_only && !IsMove(operation)) continue;
    ApplyRandOperation(shape, operation, static_cast<int>(numbers[1]), negative, scratch, pixels);
  }
}

void RandAugment(Shape shape, Numbers numbers, Draws draws, Scratch scratch, uint8_t* pixels) {
  RandOperations(shape, numbers, draws, /*moves_only=*/false, scratch, pixels);
}

void RandAugmentMask(Shape shape, Numbers numbers, Draws draws, Scratch scratch, uint8_t* ids) {
  RandOperations(shape, numbers, draws, /*moves_only=*/true, scratch, ids);
}

constexpr NumberRange kHalf{0, 1, 0.5}, kTenth{0, 1, 0.1}, kAlpha{0.01, 4};

constexpr PictureTransform kTransforms[] = {
    {"rrc",
     "rrc[:LEAST[:MOST]]",
     "a box of LEAST to MOST (0.08 to 1) of the picture's area, resized; first of all",
     0,
     2,
     {{{1e-6, 1, 0.08}, {1e-6, 1, 1}}},
     nullptr,
     nullptr},
    {"crop",
     "crop:PIXELS",
     "moved by up to PIXELS each way, black beyond the picture",
     1,
     1,
     {{{0, 1 << 14, 0, true}}},
     OneCopy,
     Crop,
     /*mixes=*/false,
     Crop},
    {"flip",
     "flip[:P]",
     "left and right change sides, with probability P (0.5)",
     0,
     1,
     {{kHalf}},
     nullptr,
     Flip,
     /*mixes=*/false,
     Flip},
    {"vflip",
     "vflip[:P]",
     "top and bottom change sides, with probability P (0.5)",
     0,
     1,
     {{kHalf}},
     nullptr,
     FlipVertically,
     /*mixes=*/false,
     FlipVertically},
    {"rotate",
     "rotate:DEGREES",
     "turned by up to DEGREES each way, black beyond the picture",
     1,
     1,
     {{{0, 180, 0}}},
     OneCopy,
     RotateAtRandom,
     /*mixes=*/false,
     RotateAtRandom},
    {"jitter",
     "jitter:B[:C[:S[:H]]]",
     "brightness, contrast and saturation times 1-B to 1+B, ..., hue turned by -H to H, in any "
     "order",
     1,
     4,
     {{{0, 16, 0}, {0, 16, 0}, {0, 16, 0}, {0, 0.5, 0}}},
     nullptr,
     Jitter},
    {"grey",
     "grey[:P]",
     "luma in all channels, with probability P (0.1)",
     0,
     1,
     {{kTenth}},
     nullptr,
     Grey},
    {"blur",
     "blur[:RADIUS[:LEAST[:MOST]]]",
     "Gauss of LEAST to MOST pixels (0.1 to 2), cut RADIUS (2) pixels from the middle",
     0,
     3,
     {{{1, 31, 2, true}, {0.01, 100, 0.1}, {0.01, 100, 2}}},
     BlurBytes,
     BlurAtRandom},
    {"erase",
     "erase[:P]",
     "a box of 2 to 33 % of the area becomes the mean, with probability P (0.5)",
     0,
     1,
     {{kHalf}},
     nullptr,
     EraseAtRandom,
     /*mixes=*/false,
     EraseAtRandom},
    {"randaugment",
     "randaugment[:N[:M]]",
     "N (2) operations of RandAugment with magnitude M (9) of 30",
     0,
     2,
     {{{1, 16, 2, true}, {0, kMostMagnitude, 9, true}}},
     OneCopy,
     RandAugment,
     /*mixes=*/false,
     RandAugmentMask},
    {"mixup",
     "mixup:ALPHA",
     "mixed with another picture, and its label; the weight is of Beta(ALPHA, ALPHA)",
     1,
     1,
     {{kAlpha}},
     nullptr,
     nullptr,
     /*mixes=*/true},
    {"cutmix",
     "cutmix:ALPHA",
     "a box of another picture, as large a part as 1 less such a weight, and its label",
     1,
     1,
     {{kAlpha}},
     nullptr,
     nullptr,
     /*mixes=*/true},
};

}  // namespace

uint32_t TransformDraws::Word() {
  if (next_ % 4 == 0) {
    const uint64_t upper = static_cast<uint64_t>(sample_) >> 32 << 32;
    block_ = DrawBlock(key_, static_cast<uint32_t>(sample_), upper | next_ / 4);
  }
  return block_[next_++ % 4];
}

std::span<const PictureTransform> PictureTransforms() { return kTransforms; }

}  // namespace ridge
