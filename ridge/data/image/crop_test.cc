#include "ridge/data/image/crop.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace ridge {
namespace {

std::vector<uint8_t> Picture(const ImageSize& size, int channels) {
  std::vector<uint8_t> pixels(
      static_cast<size_t>(size.height * size.width * channels + kResizeSlackBytes));
  std::iota(pixels.begin(), pixels.end(), uint8_t{0});
  return pixels;
}

std::vector<uint8_t> Stretched(const ImageSize& from, const ImageSize& to, int channels) {
  const ResizeCall call =
      FitPicture(from, to, ImageFit::kStretch, ResizeFilter::kBilinear, channels);
  std::vector<char> scratch(static_cast<size_t>(ResizeScratchBytes(call)));
  std::vector<uint8_t> pixels(static_cast<size_t>(to.height * to.width * channels));
  Resize(call, Picture(from, channels).data(), scratch, pixels.data());
  return pixels;
}

struct PadCase {
  ImageSize from, to, inside;
  int64_t top, left;
};

// All of the picture is there, scaled by one factor, and the rest has the margin's level.
TEST(FitPicture, APaddedPictureIsWholeInTheMiddleOfItsMargins) {
  const PadCase cases[] = {
      {{30, 60}, {32, 32}, {16, 32}, 8, 0},   {{60, 30}, {32, 32}, {32, 16}, 0, 8},
      {{10, 10}, {32, 32}, {32, 32}, 0, 0},   {{10, 10}, {20, 35}, {20, 20}, 0, 7},
      {{1, 900}, {16, 16}, {1, 16}, 7, 0},    {{31, 64}, {32, 32}, {16, 32}, 8, 0},
      {{480, 640}, {64, 64}, {48, 64}, 8, 0}, {{33, 64}, {32, 32}, {17, 32}, 7, 0}};
  for (const PadCase& c : cases) {
    for (const int channels : {1, 3}) {
      const ResizeCall call =
          FitPicture(c.from, c.to, ImageFit::kPad, ResizeFilter::kBilinear, channels);
      std::vector<char> scratch(static_cast<size_t>(ResizeScratchBytes(WithoutMargins(call))));
      std::vector<uint8_t> pixels(static_cast<size_t>(c.to.height * c.to.width * channels));
      FillWindow(call, Picture(c.from, channels).data(), scratch, /*level=*/7, pixels.data());
      const std::vector<uint8_t> inside = Stretched(c.from, c.inside, channels);
      for (int64_t y = 0; y < c.to.height; ++y) {
        for (int64_t x = 0; x < c.to.width * channels; ++x) {
          const int64_t row = y - c.top, column = x - c.left * channels;
          const bool in = row >= 0 && row < c.inside.height && column >= 0 &&
                          column < c.inside.width * channels;
          const int expected =
              in ? inside[static_cast<size_t>(row * c.inside.width * channels + column)] : 7;
          ASSERT_EQ(pixels[static_cast<size_t>(y * c.to.width * channels + x)], expected)
              << c.from.height << "x" << c.from.width << " at " << y << "," << x;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ridge
