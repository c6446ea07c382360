#include "ridge/data/image/picture.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/core/rounding.h"
#include "ridge/data/image/decode.h"

namespace ridge {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kMostScaled = 1 << 24;  // of a side before the crop; Pillow's boxes are floats

}  // namespace

TensorType PictureTarget::type() const {
  if (channels == 1) return {DType::kU8, {size.height, size.width}};
  return {DType::kU8, {size.height, size.width, channels}};
}

ResizeCall PictureReader::Call(const ImageHeader& header) const {
  return FitPicture({header.height, header.width}, target_.size, target_.fit, target_.filter,
                    target_.channels);
}

int64_t PictureReader::DecodeScratch(const ImageHeader& header) const {
  const bool ids = content_ == PictureContent::kClassIds;
  return RoundUp((ids ? header.pixels() : DecodedBytes(header)) + kResizeSlackBytes, kAlignment);
}

int64_t PictureReader::ResizeScratch(const ImageHeader& header) const {
  const int64_t most_of_boxes =
      MostResizeScratchBytes(FitPicture({header.height, header.width}, target_.size,
                                        ImageFit::kStretch, target_.filter, target_.channels));
  const int64_t whole = ResizeScratchBytes(WithoutMargins(Call(header)));
  return RoundUp(std::max(whole, most_of_boxes), kAlignment);
}

Status PictureReader::Admit(const ImageHeader& header) {
  const ResizeCall call = Call(header);
  if (call.x.out > kMostScaled || call.y.out > kMostScaled) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("has {}x{} pixels, too thin to be cropped to {}x{}", header.width,
                              header.height, target_.size.width, target_.size.height));
  }
  decoded_bytes_ = std::max(decoded_bytes_, DecodeScratch(header));
  resize_bytes_ = std::max(resize_bytes_, ResizeScratch(header));
  heap_bytes_ = std::max(heap_bytes_, header.decoder_bytes);
  return Status();
}

Status PictureReader::Decode(std::span<const uint8_t> file, const ImageHeader& header,
                             std::span<uint8_t> pixels) const {
  if (content_ == PictureContent::kClassIds) return DecodeMask(file, header, pixels);
  return DecodeImage(file, header, pixels);
}

Status PictureReader::Read(std::span<const uint8_t> file, std::span<char> scratch, uint8_t* out,
                           const CropDraw* crop, StageSeconds* stages) const {
  RIDGE_ASSIGN_OR_RETURN(const auto header, ReadImageHeader(file, /*whole=*/true));
  const auto decode = [&](std::span<uint8_t> pixels) { return Decode(file, *header, pixels); };
  return ReadPixels(*header, decode, scratch, out, crop, stages);
}

Status PictureReader::ReadPixels(const ImageHeader& header, const DecodePixels& decode,
                                 std::span<char> scratch, uint8_t* out, const CropDraw* crop,
                                 StageSeconds* stages) const {
  if (DecodeScratch(header) > decoded_bytes_ || ResizeScratch(header) > resize_bytes_)
    return Status(ErrorCode::kInvalidData, kPictureChanged);
  auto* pixels = reinterpret_cast<uint8_t*>(scratch.data());
  const auto decoded = static_cast<size_t>(decoded_bytes_);
  {
    const StageTimer timer(stages, InputStage::kDecode);
    RIDGE_RETURN_IF_ERROR(decode({pixels, decoded}));
    if (content_ == PictureContent::kColors && target_.channels == 1)
      RgbToLuma(pixels, header.pixels());
  }
  const StageTimer timer(stages, InputStage::kResize);
  const std::span<char> rest = scratch.subspan(decoded);
  if (crop == nullptr) {
    FillWindow(Call(header), pixels, rest, margin(), out);
    return Status();
  }
  const PictureBox box = DrawCrop(*crop, header.height, header.width);
  ResizeBox(pixels, header.width, box, rest, out);
  return Status();
}

void PictureReader::ResizeBox(const uint8_t* pixels, int64_t width, const PictureBox& box,
                              std::span<char> scratch, uint8_t* out) const {
  ResizeCall call = FitPicture({box.height, box.width}, target_.size, ImageFit::kStretch,
                               target_.filter, target_.channels);
  call.stride = width * target_.channels;
  Resize(call, pixels + box.top * call.stride + box.left * target_.channels, scratch, out);
}

}  // namespace ridge
