#include "ridge/train/store/evaluation_pictures.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ridge {
namespace {

constexpr int64_t kSide = 320;  // pixels of the matrix, about
constexpr uint8_t kDark[3] = {8, 48, 107};

// `share` of the way from white to dark.
uint8_t Shade(double share, uint8_t dark) {
  return static_cast<uint8_t>(std::lround(255 - share * (255 - dark)));
}

}  // namespace

std::optional<RgbPicture> ConfusionPicture(const EvaluationRecord& record) {
  const auto classes = static_cast<int64_t>(record.classes.size());
  if (classes == 0 || static_cast<int64_t>(record.confusion.size()) != classes * classes)
    return std::nullopt;
  const int64_t cell = std::max<int64_t>(1, kSide / classes);
  RgbPicture picture = RgbPicture::Filled({cell * classes, cell * classes}, 255);
  for (int64_t row = 0; row < classes; ++row) {
    const auto begin = record.confusion.begin() + row * classes;
    const double sum = static_cast<double>(std::accumulate(begin, begin + classes, int64_t{0}));
    for (int64_t column = 0; column < classes && sum > 0; ++column) {
      const double share = static_cast<double>(begin[column]) / sum;
      for (int64_t pixel = 0; pixel < cell * cell; ++pixel) {
        uint8_t* at = picture.At(row * cell + pixel / cell, column * cell + pixel % cell);
        for (int c = 0; c < 3; ++c) at[c] = Shade(share, kDark[c]);
      }
    }
  }
  return picture;
}

RgbPicture ToRgb(const Thumbnail& thumbnail) {
  RgbPicture rgb = RgbPicture::Filled({thumbnail.height, thumbnail.width}, /*value=*/0);
  const auto channels = static_cast<size_t>(thumbnail.channels);
  for (size_t i = 0; i < rgb.pixels.size(); ++i)
    rgb.pixels[i] = thumbnail.pixels[i / 3 * channels + (channels == 3 ? i % 3 : 0)];
  return rgb;
}

}  // namespace ridge
