// FitPicture: the resize that makes a picture of any size fill a model's [height, width].
#pragma once
#include "ridge/data/image/resize.h"

namespace ridge {

enum class ImageFit : uint8_t {
  kCrop,     // both sides cover the model's, what stands over is cut off left and right, or top
             // and bottom: torchvision's Resize and CenterCrop
  kStretch,  // each side becomes the model's
};

struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
  bool operator==(const ImageSize&) const = default;
};

// One call with the bytes of Pillow's two: the crop is the window.
ResizeCall FitPicture(const ImageSize& from, const ImageSize& to, ImageFit fit, ResizeFilter filter,
                      int channels);

}  // namespace ridge
