// torchvision's Resize(s) gives the shorter side s and the longer int(s * longer / shorter);
// CenterCrop begins at round((side - wanted) / 2), halves to even.  For models that are not square
// the side that needs the larger scale plays the shorter.
#include "ridge/data/image/crop.h"

#include <algorithm>
#include <cmath>

namespace ridge {
namespace {

ResizeAxis CropAxis(int64_t in, int64_t scaled, int64_t wanted) {
  ResizeAxis axis = ResizeAxis::Whole(in, scaled);
  axis.first = static_cast<int64_t>(std::nearbyint(static_cast<double>(scaled - wanted) / 2));
  axis.count = wanted;
  return axis;
}

}  // namespace

ResizeCall FitPicture(const ImageSize& from, const ImageSize& to, ImageFit fit, ResizeFilter filter,
                      int channels) {
  ResizeCall call{.channels = channels, .filter = filter};
  if (fit == ImageFit::kStretch) {
    call.x = ResizeAxis::Whole(from.width, to.width);
    call.y = ResizeAxis::Whole(from.height, to.height);
    return call;
  }
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
