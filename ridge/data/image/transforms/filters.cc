#include "ridge/data/image/transforms/filters.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ridge/core/status.h"
#include "ridge/data/image/transforms/color.h"

namespace ridge {
namespace {

constexpr int64_t kMostBlur = 63;

// Mirrored without the edge itself; more than once in pictures smaller than the filter.
int64_t Mirrored(int64_t at, int64_t extent) {
  if (extent == 1) return 0;
  const int64_t period = 2 * (extent - 1);
  const int64_t inside = ((at % period) + period) % period;
  return inside < extent ? inside : period - inside;
}

struct Gauss {
  int64_t half = 0;
  std::array<float, kMostBlur> weights{};

  Gauss(int64_t size, double sigma) : half(size / 2) {
    float sum = 0;
    for (int64_t i = 0; i < size; ++i) {
      const double x = static_cast<double>(i - half) / sigma;
      sum += weights[static_cast<size_t>(i)] = static_cast<float>(std::exp(-0.5 * x * x));
    }
    for (float& weight : weights) weight /= sum;
  }
};

// to[x] = sum of weights times the pixels about x; `step` between neighbours.
void BlurRow(const Gauss& gauss, const uint8_t* row, int64_t width, int channels, float* to) {
  std::fill_n(to, width * channels, 0.0F);
  for (int64_t tap = -gauss.half; tap <= gauss.half; ++tap) {
    const float weight = gauss.weights[static_cast<size_t>(tap + gauss.half)];
    for (int64_t x = 0; x < width; ++x) {
      const uint8_t* pixel = row + Mirrored(x + tap, width) * channels;
      for (int c = 0; c < channels; ++c)
        to[x * channels + c] += weight * static_cast<float>(pixel[c]);
    }
  }
}

void BlurColumns(const Gauss& gauss, const float* rows, int64_t y, const PictureShape& shape,
                 float* sums, uint8_t* to) {
  const int64_t length = shape.width * shape.channels;
  std::fill_n(sums, length, 0.0F);
  for (int64_t tap = -gauss.half; tap <= gauss.half; ++tap) {
    const float weight = gauss.weights[static_cast<size_t>(tap + gauss.half)];
    const float* row = rows + Mirrored(y + tap, shape.height) * length;
    for (int64_t i = 0; i < length; ++i) sums[i] += weight * row[i];
  }
  for (int64_t i = 0; i < length; ++i)
    to[i] = static_cast<uint8_t>(std::clamp(std::nearbyint(sums[i]), 0.0F, 255.0F));
}

// The 3x3 mean at the middle of three pixels of three rows.
int Smoothed(const uint8_t* at, int64_t row, int step) {
  constexpr float kEdge = 1.0F / 13.0F, kMiddle = 5.0F / 13.0F;
  const auto line = [&](const uint8_t* from, float middle) {
    return static_cast<float>(from[-step]) * kEdge + static_cast<float>(from[0]) * middle +
           static_cast<float>(from[step]) * kEdge;
  };
  float sum = 0.5F;
  sum += line(at + row, kEdge);
  sum += line(at, kMiddle);
  sum += line(at - row, kEdge);
  return std::clamp(static_cast<int>(sum), 0, 255);
}

}  // namespace

int64_t BlurScratchBytes(const PictureShape& shape) {
  return (shape.bytes() + shape.width * shape.channels) * static_cast<int64_t>(sizeof(float));
}

void Blur(const PictureShape& shape, int64_t size, double sigma, std::span<char> scratch,
          uint8_t* pixels) {
  RIDGE_CHECK(size % 2 == 1 && size <= kMostBlur, "the filter has a middle");
  const Gauss gauss(size, sigma);
  auto* rows = reinterpret_cast<float*>(scratch.data());  // [H, W, C]
  const int64_t length = shape.width * shape.channels;
  for (int64_t y = 0; y < shape.height; ++y)
    BlurRow(gauss, pixels + y * length, shape.width, shape.channels, rows + y * length);
  for (int64_t y = 0; y < shape.height; ++y)
    BlurColumns(gauss, rows, y, shape, rows + shape.bytes(), pixels + y * length);
}

void AdjustSharpness(const PictureShape& shape, double factor, std::span<char> scratch,
                     uint8_t* pixels) {
  std::memcpy(scratch.data(), pixels, static_cast<size_t>(shape.bytes()));
  const auto* from = reinterpret_cast<const uint8_t*>(scratch.data());
  const int64_t row = shape.width * shape.channels;
  for (int64_t y = 1; y + 1 < shape.height; ++y) {
    for (int64_t i = shape.channels; i + shape.channels < row; ++i) {
      const uint8_t* at = from + y * row + i;
      pixels[y * row + i] =
          BlendPixels(Smoothed(at, row, shape.channels), *at, static_cast<float>(factor));
    }
  }
}

}  // namespace ridge
