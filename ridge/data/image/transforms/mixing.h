// Mixing: what mixup and cutmix make of two pictures and their labels.
//
// With given draws, torchvision's rules of v2.MixUp and v2.CutMix.  A sample's draws are a function
// of (seed, epoch, sample).
#pragma once
#include "ridge/data/image/transforms/geometry.h"
#include "ridge/data/image/transforms/transform.h"

namespace ridge {

// The parameter of Beta(alpha, alpha), from which a sample's weight is drawn; 0: never.  With both
// each sample is mixed by one of them, by chance.
struct Mixing {
  double mixup = 0;
  double cutmix = 0;
  uint64_t seed = 0;

  bool any() const { return mixup > 0 || cutmix > 0; }
};

struct MixDraw {
  bool cuts = false;
  double weight = 1;  // of the picture and of its label; the partner has the rest
  PictureBox box;     // what the partner covers; of cutmix
};
MixDraw DrawMix(const Mixing& mixing, int64_t epoch, int64_t sample, const PictureShape& shape);

// A number of Beta(alpha, alpha).  REQUIRES: 0 < alpha <= 4.
double DrawBeta(double alpha, TransformDraws& draws);

// weight * pixels + (1 - weight) * other, rounded; or the box of `other` onto `pixels`.
void Mix(const PictureShape& shape, const MixDraw& draw, const uint8_t* other, uint8_t* pixels);

}  // namespace ridge
