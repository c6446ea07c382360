// After Pillow 13, src/libImaging/Geometry.c (affine_fixed) and Image.rotate.
#include "ridge/data/image/transforms/geometry.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace ridge {
namespace {

const uint8_t* CopyTo(std::span<char> scratch, const PictureShape& shape, const uint8_t* pixels) {
  std::memcpy(scratch.data(), pixels, static_cast<size_t>(shape.bytes()));
  return reinterpret_cast<const uint8_t*>(scratch.data());
}

template <int kChannels>
void FlipRow(uint8_t* row, int64_t width) {
  for (int64_t left = 0, right = width - 1; left < right; ++left, --right)
    std::swap_ranges(row + left * kChannels, row + (left + 1) * kChannels, row + right * kChannels);
}

int64_t Fixed(double value) { return static_cast<int64_t>(std::floor(value * 65536.0 + 0.5)); }

template <int kChannels>
void AffineRow(const uint8_t* from, const PictureShape& shape, int64_t x, int64_t y, int64_t dx,
               int64_t dy, uint8_t* to) {
  for (int64_t i = 0; i < shape.width; ++i, x += dx, y += dy, to += kChannels) {
    const int64_t column = x >> 16, row = y >> 16;
    const bool inside = column >= 0 && column < shape.width && row >= 0 && row < shape.height;
    const uint8_t* pixel = from + (row * shape.width + column) * kChannels;
    for (int c = 0; c < kChannels; ++c) to[c] = inside ? pixel[c] : 0;
  }
}

// Pillow rounds to 15 decimals, so that right angles are exact.
double Round15(double value) { return std::nearbyint(value * 1e15) / 1e15; }

}  // namespace

void FlipLeftRight(const PictureShape& shape, uint8_t* pixels) {
  for (int64_t y = 0; y < shape.height; ++y, pixels += shape.width * shape.channels)
    shape.channels == 3 ? FlipRow<3>(pixels, shape.width) : FlipRow<1>(pixels, shape.width);
}

void FlipTopBottom(const PictureShape& shape, uint8_t* pixels) {
  const int64_t row = shape.width * shape.channels;
  for (int64_t y = 0; y < shape.height / 2; ++y)
    std::swap_ranges(pixels + y * row, pixels + (y + 1) * row,
                     pixels + (shape.height - 1 - y) * row);
}

void Shift(const PictureShape& shape, int64_t top, int64_t left, std::span<char> scratch,
           uint8_t* pixels) {
  const uint8_t* from = CopyTo(scratch, shape, pixels);
  std::memset(pixels, 0, static_cast<size_t>(shape.bytes()));
  const int64_t row = shape.width * shape.channels;
  const int64_t first = std::max<int64_t>(0, -left),
                end = std::min(shape.width, shape.width - left);
  if (first >= end) return;
  const auto bytes = static_cast<size_t>((end - first) * shape.channels);
  for (int64_t y = std::max<int64_t>(0, -top); y < std::min(shape.height, shape.height - top); ++y)
    std::memcpy(pixels + y * row + first * shape.channels,
                from + (y + top) * row + (first + left) * shape.channels, bytes);
}

void Affine(const PictureShape& shape, const std::array<double, 6>& m, std::span<char> scratch,
            uint8_t* pixels) {
  const uint8_t* from = CopyTo(scratch, shape, pixels);
  int64_t x = Fixed(m[2] + m[0] * 0.5 + m[1] * 0.5), y = Fixed(m[5] + m[3] * 0.5 + m[4] * 0.5);
  const auto row = shape.channels == 3 ? AffineRow<3> : AffineRow<1>;
  for (int64_t line = 0; line < shape.height; ++line, x += Fixed(m[1]), y += Fixed(m[4])) {
    row(from, shape, x, y, Fixed(m[0]), Fixed(m[3]), pixels);
    pixels += shape.width * shape.channels;
  }
}

void Rotate(const PictureShape& shape, double degrees, std::span<char> scratch, uint8_t* pixels) {
  const double angle = -degrees * std::numbers::pi / 180;
  const double cosine = Round15(std::cos(angle)), sine = Round15(std::sin(angle));
  const double x = static_cast<double>(shape.width) / 2, y = static_cast<double>(shape.height) / 2;
  Affine(shape,
         {cosine, sine, cosine * -x + sine * -y + x, -sine, cosine, -sine * -x + cosine * -y + y},
         scratch, pixels);
}

void Erase(const PictureShape& shape, const PictureBox& box, uint8_t* pixels) {
  for (int64_t y = box.top; y < box.top + box.height; ++y) {
    uint8_t* to = pixels + (y * shape.width + box.left) * shape.channels;
    for (int64_t x = 0; x < box.width; ++x, to += shape.channels)
      std::memcpy(to, shape.erased.data(), static_cast<size_t>(shape.channels));
  }
}

}  // namespace ridge
