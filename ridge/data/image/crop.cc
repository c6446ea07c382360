// torchvision's Resize(s) gives the shorter side s and the longer int(s * longer / shorter);
// CenterCrop begins at round((side - wanted) / 2), halves to even.  For models that are not square
// the side that needs the larger scale plays the shorter.
#include "ridge/data/image/crop.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ridge {
namespace {

ResizeAxis CropAxis(int64_t in, int64_t scaled, int64_t wanted) {
  ResizeAxis axis = ResizeAxis::Whole(in, scaled);
  axis.first = static_cast<int64_t>(std::nearbyint(static_cast<double>(scaled - wanted) / 2));
  axis.count = wanted;
  return axis;
}

// The result in the middle of a window of `wanted`; the odd pixel of the margins comes last.
ResizeAxis PadAxis(int64_t in, int64_t scaled, int64_t wanted) {
  ResizeAxis axis = ResizeAxis::Whole(in, scaled);
  axis.first = -((wanted - scaled) / 2);
  axis.count = wanted;
  return axis;
}

ResizeCall PadPicture(const ImageSize& from, const ImageSize& to, ResizeCall call) {
  const double scale = std::min(static_cast<double>(to.width) / static_cast<double>(from.width),
                                static_cast<double>(to.height) / static_cast<double>(from.height));
  const auto side = [&](int64_t extent, int64_t most) {
    return std::clamp<int64_t>(std::llround(static_cast<double>(extent) * scale), 1, most);
  };
  call.x = PadAxis(from.width, side(from.width, to.width), to.width);
  call.y = PadAxis(from.height, side(from.height, to.height), to.height);
  return call;
}

ResizeAxis WithoutMargin(ResizeAxis axis) {
  if (axis.first >= 0 && axis.first + axis.count <= axis.out) return axis;
  axis.first = 0;
  axis.count = axis.out;
  return axis;
}

}  // namespace

ResizeCall WithoutMargins(const ResizeCall& call) {
  ResizeCall inner = call;
  inner.x = WithoutMargin(call.x);
  inner.y = WithoutMargin(call.y);
  return inner;
}

void FillWindow(const ResizeCall& call, const uint8_t* from, std::span<char> scratch, uint8_t level,
                uint8_t* to) {
  const ResizeCall inner = WithoutMargins(call);
  Resize(inner, from, scratch, to);
  if (inner.x.count == call.x.count && inner.y.count == call.y.count) return;
  const int64_t row = inner.x.count * call.channels, stride = call.x.count * call.channels;
  const int64_t left = -call.x.first * call.channels, top = -call.y.first;
  uint8_t* behind = to + call.y.count * stride;       // of what has its final bytes
  for (int64_t y = inner.y.count - 1; y >= 0; --y) {  // no row is written over before it moved
    uint8_t* place = to + (top + y) * stride + left;
    std::memmove(place, to + y * row, static_cast<size_t>(row));
    std::fill(place + row, behind, level);
    behind = place;
  }
  std::fill(to, behind, level);
}

ResizeCall FitPicture(const ImageSize& from, const ImageSize& to, ImageFit fit, ResizeFilter filter,
                      int channels) {
  ResizeCall call{.channels = channels, .filter = filter};
  if (fit == ImageFit::kStretch) {
    call.x = ResizeAxis::Whole(from.width, to.width);
    call.y = ResizeAxis::Whole(from.height, to.height);
    return call;
  }
  if (fit == ImageFit::kPad) return PadPicture(from, to, call);
  ImageSize scaled = to;
  if (to.width * from.height >= to.height * from.width)  // the width needs the larger scale
    scaled.height = std::max(to.height, to.width * from.height / from.width);
  else
    scaled.width = std::max(to.width, to.height * from.width / from.height);
  call.x = CropAxis(from.width, scaled.width, to.width);
  call.y = CropAxis(from.height, scaled.height, to.height);
  return call;
}

}  // namespace ridge
