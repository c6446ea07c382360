#include "ridge/data/image/transforms/random_box.h"

#include <cmath>

namespace ridge {
namespace {

constexpr int kTries = 10;

int64_t Rounded(double value) { return static_cast<int64_t>(std::nearbyint(value)); }

// A side that is `ratio` times the other, of a box of `area`.
int64_t SideOf(double area, double ratio) { return Rounded(std::sqrt(area * ratio)); }

double DrawRatio(TransformDraws& draws, double least, double most) {
  return std::exp(draws.Uniform(std::log(least), std::log(most)));
}

PictureBox Place(TransformDraws& draws, int64_t height, int64_t width, int64_t box_height,
                 int64_t box_width) {
  const int64_t top = draws.Below(height - box_height + 1);
  return {top, draws.Below(width - box_width + 1), box_height, box_width};
}

PictureBox Middle(int64_t height, int64_t width, double least_ratio, double most_ratio) {
  PictureBox box{0, 0, height, width};
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  if (ratio < least_ratio) box.height = Rounded(static_cast<double>(width) / least_ratio);
  if (ratio > most_ratio) box.width = Rounded(static_cast<double>(height) * most_ratio);
  box.top = (height - box.height) / 2;
  box.left = (width - box.width) / 2;
  return box;
}

}  // namespace

PictureBox DrawCrop(const CropDraw& crop, int64_t height, int64_t width) {
  constexpr double kLeastRatio = 3.0 / 4, kMostRatio = 4.0 / 3;
  TransformDraws draws(crop.key, crop.sample);
  const double area = static_cast<double>(height) * static_cast<double>(width);
  for (int i = 0; i < kTries; ++i) {
    const double wanted = area * draws.Uniform(crop.least_area, crop.most_area);
    const double ratio = DrawRatio(draws, kLeastRatio, kMostRatio);
    const int64_t box_width = SideOf(wanted, ratio), box_height = SideOf(wanted, 1 / ratio);
    if (box_width > 0 && box_width <= width && box_height > 0 && box_height <= height)
      return Place(draws, height, width, box_height, box_width);
  }
  return Middle(height, width, kLeastRatio, kMostRatio);
}

PictureBox DrawErased(TransformDraws& draws, int64_t height, int64_t width) {
  const double area = static_cast<double>(height) * static_cast<double>(width);
  for (int i = 0; i < kTries; ++i) {
    const double wanted = area * draws.Uniform(0.02, 0.33);
    const double ratio = DrawRatio(draws, 0.3, 3.3);
    const int64_t box_height = SideOf(wanted, ratio), box_width = SideOf(wanted, 1 / ratio);
    if (box_height < height && box_width < width)
      return Place(draws, height, width, box_height, box_width);
  }
  return {};
}

}  // namespace ridge
