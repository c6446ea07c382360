// Changes by neighbours: blurring and sharpening.
#pragma once
#include "ridge/data/image/transforms/transform.h"

namespace ridge {

// torchvision's gaussian_blur: weights exp(-x^2 / (2 sigma^2)) of `size` pixels (odd) a side,
// normalized, the picture mirrored at its edges; sums in f32, rounded at the end, halves to even.
// torchvision sums in another order: 1 level here and there.
int64_t BlurScratchBytes(const PictureShape& shape);
void Blur(const PictureShape& shape, int64_t size, double sigma, std::span<char> scratch,
          uint8_t* pixels);

// Pillow's ImageEnhance.Sharpness: blend(smoothed, picture, factor); smoothed is the mean of 3x3
// pixels with 5 parts of the middle one, and the picture itself at its edges.
// `scratch`: shape.bytes().
void AdjustSharpness(const PictureShape& shape, double factor, std::span<char> scratch,
                     uint8_t* pixels);

}  // namespace ridge
