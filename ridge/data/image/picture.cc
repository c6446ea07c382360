#include "ridge/data/image/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ridge/core/rounding.h"
#include "ridge/data/image/decode.h"

namespace ridge {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kMostScaled = 1 << 24;  // of a side before the crop; Pillow's boxes are floats

PictureBox WholeOf(const ImageHeader& header) { return {0, 0, header.height, header.width}; }

std::optional<PictureBox> BoxOf(const CropDraw* crop, const ImageHeader& header) {
  if (crop == nullptr) return std::nullopt;
  return DrawCrop(*crop, header.height, header.width);
}

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
  const std::optional<PictureBox> box = BoxOf(crop, *header);
  const auto decode = [&](std::span<uint8_t> pixels) -> Result<PictureBox> {
    if (box && content_ == PictureContent::kColors)
      return DecodeImageBox(file, *header, *box, pixels);
    RIDGE_RETURN_IF_ERROR(Decode(file, *header, pixels));
    return WholeOf(*header);
  };
  return ReadPart(*header, decode, box ? &*box : nullptr, scratch, out, stages);
}

Status PictureReader::ReadPixels(const ImageHeader& header, const DecodePixels& decode,
                                 std::span<char> scratch, uint8_t* out, const CropDraw* crop,
                                 StageSeconds* stages) const {
  const std::optional<PictureBox> box = BoxOf(crop, header);
  const auto decode_all = [&](std::span<uint8_t> pixels) -> Result<PictureBox> {
    RIDGE_RETURN_IF_ERROR(decode(pixels));
    return WholeOf(header);
  };
  return ReadPart(header, decode_all, box ? &*box : nullptr, scratch, out, stages);
}

Status PictureReader::ReadPart(const ImageHeader& header, const DecodePart& decode,
                               const PictureBox* box, std::span<char> scratch, uint8_t* out,
                               StageSeconds* stages) const {
  if (DecodeScratch(header) > decoded_bytes_ || ResizeScratch(header) > resize_bytes_)
    return Status(ErrorCode::kInvalidData, kPictureChanged);
  auto* pixels = reinterpret_cast<uint8_t*>(scratch.data());
  const auto decoded = static_cast<size_t>(decoded_bytes_);
  PictureBox part;
  {
    const StageTimer timer(stages, InputStage::kDecode);
    RIDGE_ASSIGN_OR_RETURN(part, decode({pixels, decoded}));
    if (content_ == PictureContent::kColors && target_.channels == 1)
      RgbToLuma(pixels, part.height * part.width);
  }
  const StageTimer timer(stages, InputStage::kResize);
  const std::span<char> rest = scratch.subspan(decoded);
  if (box == nullptr)
    FillWindow(Call(header), pixels, rest, margin(), out);
  else
    ResizeBox(pixels, part, *box, rest, out);
  return Status();
}

void PictureReader::ResizeBox(const uint8_t* pixels, const PictureBox& part, const PictureBox& box,
                              std::span<char> scratch, uint8_t* out) const {
  ResizeCall call = FitPicture({box.height, box.width}, target_.size, ImageFit::kStretch,
                               target_.filter, target_.channels);
  call.stride = part.width * target_.channels;
  const int64_t top = box.top - part.top, left = box.left - part.left;
  Resize(call, pixels + top * call.stride + left * target_.channels, scratch, out);
}

}  // namespace ridge
