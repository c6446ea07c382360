// FitPicture: the resize that makes a picture of any size fill a model's [height, width].
#pragma once
#include "ridge/data/image/resize.h"

namespace ridge {

enum class ImageFit : uint8_t {
  kCrop,     // both sides cover the model's, what stands over is cut off left and right, or top
             // and bottom: torchvision's Resize and CenterCrop
  kStretch,  // each side becomes the model's
  kPad,      // all of it in the middle of the model's, with a margin left and right, or top and
             // bottom: Ultralytics' LetterBox
};

struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
  bool operator==(const ImageSize&) const = default;
};

// One call with the bytes of Pillow's two: the crop is the window.  With kPad the window is larger
// than the result, so it begins before 0; FillWindow takes such calls, Resize does not.
ResizeCall FitPicture(const ImageSize& from, const ImageSize& to, ImageFit fit, ResizeFilter filter,
                      int channels);

constexpr uint8_t kPadLevel = 114;  // of every channel, as Ultralytics has it

// The call without its margins; its result is a part of the window.
ResizeCall WithoutMargins(const ResizeCall& call);

// Resize of a call of FitPicture: [y.count, x.count, channels], margins of `level`.
// REQUIRES: as Resize of WithoutMargins(call).
void FillWindow(const ResizeCall& call, const uint8_t* from, std::span<char> scratch, uint8_t level,
                uint8_t* to);

}  // namespace ridge
