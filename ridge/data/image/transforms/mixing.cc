#include "ridge/data/image/transforms/mixing.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ridge {
namespace {

// In (0, 1), for logarithms.
double OpenUniform(TransformDraws& draws) { return (draws.Word() + 0.5) * 0x1p-32; }

// Around a random middle, cut at the picture's sides.
PictureBox DrawBox(double weight, const PictureShape& shape, TransformDraws& draws) {
  const int64_t x = draws.Below(shape.width), y = draws.Below(shape.height);
  const double half = 0.5 * std::sqrt(1 - weight);
  const auto half_width = static_cast<int64_t>(half * static_cast<double>(shape.width));
  const auto half_height = static_cast<int64_t>(half * static_cast<double>(shape.height));
  PictureBox box;
  box.left = std::max<int64_t>(0, x - half_width);
  box.top = std::max<int64_t>(0, y - half_height);
  box.width = std::min(shape.width, x + half_width) - box.left;
  box.height = std::min(shape.height, y + half_height) - box.top;
  return box;
}

}  // namespace

// Joehnk: x = u^(1/alpha), y = v^(1/alpha), until x + y <= 1; then x / (x + y).  By logarithms,
// since x and y may be too small for a double.
double DrawBeta(double alpha, TransformDraws& draws) {
  while (true) {
    const double x = std::log(OpenUniform(draws)) / alpha;
    const double y = std::log(OpenUniform(draws)) / alpha;
    const double larger = std::max(x, y);
    const double sum = larger + std::log(std::exp(x - larger) + std::exp(y - larger));
    if (sum <= 0) return std::exp(x - sum);
  }
}

MixDraw DrawMix(const Mixing& mixing, int64_t epoch, int64_t sample, const PictureShape& shape) {
  RandomKey key{mixing.seed, StableHash("augment mix"), static_cast<uint32_t>(epoch)};
  TransformDraws draws(key, sample);
  MixDraw draw;
  const bool both = mixing.mixup > 0 && mixing.cutmix > 0;
  draw.cuts = both ? draws.Chance(0.5) : mixing.cutmix > 0;
  draw.weight = DrawBeta(draw.cuts ? mixing.cutmix : mixing.mixup, draws);
  if (!draw.cuts) return draw;
  draw.box = DrawBox(draw.weight, shape, draws);
  draw.weight = 1 - static_cast<double>(draw.box.width * draw.box.height) /
                        static_cast<double>(shape.pixels());
  return draw;
}

void Mix(const PictureShape& shape, const MixDraw& draw, const uint8_t* other, uint8_t* pixels) {
  if (draw.cuts) {
    for (int64_t y = draw.box.top; y < draw.box.top + draw.box.height; ++y) {
      const int64_t at = (y * shape.width + draw.box.left) * shape.channels;
      std::memcpy(pixels + at, other + at, static_cast<size_t>(draw.box.width * shape.channels));
    }
    return;
  }
  const auto weight = static_cast<float>(draw.weight), rest = static_cast<float>(1 - draw.weight);
  for (int64_t i = 0; i < shape.bytes(); ++i)
    pixels[i] = static_cast<uint8_t>(weight * pixels[i] + rest * other[i] + 0.5F);
}

}  // namespace ridge
