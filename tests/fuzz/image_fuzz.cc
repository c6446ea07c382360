// A picture of any bytes: its header from any beginning, its pixels, as colours and as a mask, and
// a resize of them.
#include <vector>

#include "ridge/data/image/crop.h"
#include "ridge/data/image/decode.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kMostPixels = 1 << 20;
  const std::span<const uint8_t> bytes(data, size);
  const auto start = ridge::ReadImageHeader(bytes.first(size / 2), /*whole=*/false, kMostPixels);
  const auto header = ridge::ReadImageHeader(bytes, /*whole=*/true, kMostPixels);
  if (!header.ok()) return 0;
  RIDGE_CHECK(!start.ok() || !start->has_value() || **start == **header, "more bytes, same header");
  std::vector<uint8_t> ids(static_cast<size_t>((*header)->pixels()));
  (void)ridge::DecodeMask(bytes, **header, ids);
  const int64_t needed = ridge::DecodedBytes(**header);
  std::vector<uint8_t> rgb(static_cast<size_t>(needed + ridge::kResizeSlackBytes));
  const auto decoded = ridge::DecodeImage(bytes, **header, rgb);
  if (!decoded.ok()) return 0;
  const auto filter =
      size % 2 == 0 ? ridge::ResizeFilter::kBilinear : ridge::ResizeFilter::kBicubic;
  const ridge::ResizeCall call = ridge::FitPicture({(*header)->height, (*header)->width}, {28, 31},
                                                   ridge::ImageFit::kCrop, filter, /*channels=*/3);
  std::vector<char> scratch(static_cast<size_t>(ridge::ResizeScratchBytes(call)));
  std::vector<uint8_t> small(28 * 31 * 3);
  ridge::Resize(call, rgb.data(), scratch, small.data());
  return 0;
}
