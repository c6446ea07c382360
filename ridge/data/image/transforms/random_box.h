// Boxes at random places: what random-resized-crop keeps, and what random erasing takes.
#pragma once
#include "ridge/data/image/transforms/geometry.h"

namespace ridge {

// A random-resized-crop of one sample, which its source does: only it knows the picture's size
// before it is decoded.
struct CropDraw {
  double least_area = 0.08, most_area = 1;  // of the picture's
  RandomKey key;                            // step: the epoch
  int64_t sample = 0;
};

// torchvision's rule: ten tries of an area and a ratio of 3:4 to 4:3, else the largest box in the
// middle whose ratio is allowed.
PictureBox DrawCrop(const CropDraw& crop, int64_t height, int64_t width);

// torchvision's rule: ten tries of an area of 0.02 to 0.33 and a ratio of 0.3 to 3.3, else an empty
// box.
PictureBox DrawErased(TransformDraws& draws, int64_t height, int64_t width);

}  // namespace ridge
