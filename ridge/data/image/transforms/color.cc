// After Pillow 13: Blend.c, ImageEnhance.py, ImageOps.py, and Convert.c for HSV.
#include "ridge/data/image/transforms/color.h"

#include <algorithm>
#include <cmath>

namespace ridge {
namespace {

using ByteTable = std::array<uint8_t, 256>;
using Histogram = std::array<int64_t, 256>;

int Luma(const uint8_t* rgb) {
  return (19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) >> 16;
}

uint8_t Cut(int value) { return static_cast<uint8_t>(std::clamp(value, 0, 255)); }

template <typename Function>
ByteTable TableOf(Function function) {
  ByteTable table;
  for (int x = 0; x < 256; ++x) table[static_cast<size_t>(x)] = function(x);
  return table;
}

void LookUp(const PictureShape& shape, const ByteTable& table, uint8_t* pixels) {
  for (int64_t i = 0; i < shape.bytes(); ++i) pixels[i] = table[pixels[i]];
}

Histogram HistogramOf(const PictureShape& shape, int channel, const uint8_t* pixels) {
  Histogram histogram{};
  for (int64_t i = channel; i < shape.bytes(); i += shape.channels) ++histogram[pixels[i]];
  return histogram;
}

// Each channel by the table that its histogram gives.
void LookUpByHistogram(const PictureShape& shape, ByteTable (*table_of)(const Histogram&),
                       uint8_t* pixels) {
  for (int channel = 0; channel < shape.channels; ++channel) {
    const ByteTable table = table_of(HistogramOf(shape, channel, pixels));
    for (int64_t i = channel; i < shape.bytes(); i += shape.channels) pixels[i] = table[pixels[i]];
  }
}

ByteTable Same() {
  return TableOf([](int x) { return static_cast<uint8_t>(x); });
}

// The lowest value becomes 0, the highest 255.
ByteTable StretchedTable(const Histogram& histogram) {
  const auto is_there = [](int64_t count) { return count > 0; };
  const auto low = std::find_if(histogram.begin(), histogram.end(), is_there) - histogram.begin();
  const auto high =
      255 - (std::find_if(histogram.rbegin(), histogram.rend(), is_there) - histogram.rbegin());
  if (high <= low) return Same();
  const double scale = 255.0 / static_cast<double>(high - low);
  const double offset = static_cast<double>(-low) * scale;
  return TableOf([&](int x) { return Cut(static_cast<int>(x * scale + offset)); });
}

// Ranks, in steps of a 255th of the pixels below the highest value.
ByteTable EqualizedTable(const Histogram& histogram) {
  int64_t total = 0, last = 0, values = 0;
  for (const int64_t count : histogram) {
    total += count;
    if (count == 0) continue;
    last = count;
    ++values;
  }
  const int64_t step = values <= 1 ? 0 : (total - last) / 255;
  if (step == 0) return Same();
  int64_t rank = step / 2;
  return TableOf([&](int x) {
    const auto value = static_cast<uint8_t>(std::min<int64_t>(255, rank / step));
    rank += histogram[static_cast<size_t>(x)];
    return value;
  });
}

struct Hsv {
  uint8_t hue = 0, saturation = 0, value = 0;
};

Hsv HsvOf(const uint8_t* rgb) {
  const uint8_t r = rgb[0], g = rgb[1], b = rgb[2];
  const uint8_t most = std::max({r, g, b}), least = std::min({r, g, b});
  if (most == least) return {0, 0, most};
  const auto range = static_cast<float>(most - least);
  const float red = static_cast<float>(most - r) / range;
  const float green = static_cast<float>(most - g) / range;
  const float blue = static_cast<float>(most - b) / range;
  float hue = 0;
  if (r == most)
    hue = blue - green;
  else if (g == most)
    hue = static_cast<float>(2.0 + red - blue);
  else
    hue = static_cast<float>(4.0 + green - red);
  hue = static_cast<float>(std::fmod(hue / 6.0 + 1.0, 1.0));
  return {Cut(static_cast<int>(hue * 255.0)),
          Cut(static_cast<int>(range / static_cast<float>(most) * 255.0)), most};
}

void RgbOf(const Hsv& hsv, uint8_t* rgb) {
  const uint8_t v = hsv.value;
  if (hsv.saturation == 0) {
    std::fill_n(rgb, 3, v);
    return;
  }
  const double turns = static_cast<float>(hsv.hue) * 6.0 / 255.0;
  const int sextant = static_cast<int>(std::floor(turns));
  const auto f = static_cast<float>(turns - static_cast<float>(sextant));
  const auto s = static_cast<float>(static_cast<float>(hsv.saturation) / 255.0);
  const auto scaled = [&](double part) { return Cut(static_cast<int>(std::round(v * part))); };
  const uint8_t p = scaled(1.0 - s), q = scaled(1.0 - s * f), t = scaled(1.0 - s * (1.0 - f));
  const uint8_t all[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
  std::copy_n(all[sextant % 6], 3, rgb);
}

}  // namespace

uint8_t BlendPixels(int from, int to, float factor) {
  const float value = static_cast<float>(from) + factor * static_cast<float>(to - from);
  if (value <= 0) return 0;
  return value >= 255 ? 255 : static_cast<uint8_t>(value);
}

void AdjustBrightness(const PictureShape& shape, double factor, uint8_t* pixels) {
  const auto f = static_cast<float>(factor);
  LookUp(shape, TableOf([&](int x) { return BlendPixels(0, x, f); }), pixels);
}

void AdjustContrast(const PictureShape& shape, double factor, uint8_t* pixels) {
  int64_t sum = 0;
  for (int64_t i = 0; i < shape.bytes(); i += shape.channels)
    sum += shape.channels == 3 ? Luma(pixels + i) : pixels[i];
  const double mean = static_cast<double>(sum) / static_cast<double>(shape.pixels());
  const int grey = static_cast<int>(mean + 0.5);
  const auto f = static_cast<float>(factor);
  LookUp(shape, TableOf([&](int x) { return BlendPixels(grey, x, f); }), pixels);
}

void AdjustSaturation(const PictureShape& shape, double factor, uint8_t* pixels) {
  if (shape.channels != 3) return;
  for (uint8_t* at = pixels; at != pixels + shape.bytes(); at += 3) {
    const int luma = Luma(at);
    for (int c = 0; c < 3; ++c) at[c] = BlendPixels(luma, at[c], static_cast<float>(factor));
  }
}

void AdjustHue(const PictureShape& shape, double factor, uint8_t* pixels) {
  if (shape.channels != 3) return;
  const auto shift = static_cast<uint8_t>(static_cast<int>(factor * 255));
  for (uint8_t* at = pixels; at != pixels + shape.bytes(); at += 3) {
    Hsv hsv = HsvOf(at);
    hsv.hue = static_cast<uint8_t>(hsv.hue + shift);
    RgbOf(hsv, at);
  }
}

void MakeGrey(const PictureShape& shape, uint8_t* pixels) {
  if (shape.channels != 3) return;
  for (uint8_t* at = pixels; at != pixels + shape.bytes(); at += 3)
    std::fill_n(at, 3, static_cast<uint8_t>(Luma(at)));
}

void Posterize(const PictureShape& shape, int bits, uint8_t* pixels) {
  const int mask = ~((1 << (8 - bits)) - 1);
  LookUp(shape, TableOf([&](int x) { return static_cast<uint8_t>(x & mask); }), pixels);
}

void Solarize(const PictureShape& shape, double threshold, uint8_t* pixels) {
  LookUp(shape, TableOf([&](int x) { return static_cast<uint8_t>(x < threshold ? x : 255 - x); }),
         pixels);
}

void AutoContrast(const PictureShape& shape, uint8_t* pixels) {
  LookUpByHistogram(shape, StretchedTable, pixels);
}

void Equalize(const PictureShape& shape, uint8_t* pixels) {
  LookUpByHistogram(shape, EqualizedTable, pixels);
}

}  // namespace ridge
