// Changes of colour: the bytes that torchvision's functions give for Pillow's pictures.
//
// blend(a, b, f) = a + f (b - a) in f32, cut to 0..255 and down to an integer.  luma is Pillow's
// convert("L").  What is about colours leaves pictures of one channel as they are.
#pragma once
#include "ridge/data/image/transforms/transform.h"

namespace ridge {

uint8_t BlendPixels(int from, int to, float factor);

void AdjustBrightness(const PictureShape& shape, double factor, uint8_t* pixels);  // of black
void AdjustContrast(const PictureShape& shape, double factor, uint8_t* pixels);    // of mean luma
void AdjustSaturation(const PictureShape& shape, double factor, uint8_t* pixels);  // of luma
// Turns the hue by `factor` of the circle, -0.5 to 0.5, in 8 bits as Pillow's HSV.
void AdjustHue(const PictureShape& shape, double factor, uint8_t* pixels);
void MakeGrey(const PictureShape& shape, uint8_t* pixels);

void Posterize(const PictureShape& shape, int bits, uint8_t* pixels);  // keeps the upper bits
void Solarize(const PictureShape& shape, double threshold, uint8_t* pixels);  // inverts from it on
void AutoContrast(const PictureShape& shape, uint8_t* pixels);
void Equalize(const PictureShape& shape, uint8_t* pixels);

}  // namespace ridge
