// The scratch of the source and that of the transforms are the same bytes: one is done when the
// others begin.
#include "ridge/data/augment_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "ridge/core/rounding.h"
#include "ridge/data/augment_points.h"
#include "ridge/data/augment_sound.h"
#include "ridge/data/batch_spec.h"
#include "ridge/data/image/crop.h"
#include "ridge/data/mix_source.h"

namespace ridge {
namespace {

constexpr int64_t kAlignment = 64;

std::optional<PictureShape> ShapeOf(const TensorType& type) {
  const Dims& dims = type.dims;
  const bool channels = dims.size() == 3 && (dims[2] == 1 || dims[2] == 3);
  if (type.dtype != DType::kU8 || (dims.size() != 2 && !channels)) return std::nullopt;
  PictureShape shape;
  shape.height = dims[0];
  shape.width = dims[1];
  shape.channels = channels ? static_cast<int>(dims[2]) : 1;
  return shape;
}

// The mean of the channels, which normalization makes 0; black where there is none.
std::array<uint8_t, 3> MeanOf(const PixelNormalization& normalization) {
  std::array<uint8_t, 3> mean{};
  const size_t count = normalization.mean.size();
  for (size_t c = 0; c < 3 && count > 0; ++c) {
    const double level = 255 * normalization.mean[std::min(c, count - 1)];
    mean[c] = static_cast<uint8_t>(std::clamp(std::nearbyint(level), 0.0, 255.0));
  }
  return mean;
}

}  // namespace

Result<SourcePtr> AugmentTraining(SourcePtr source, const std::string& list, uint64_t seed) {
  const auto wrong = [&](const Status& why) {
    return InvalidArgument(fmt::format("--augment is '{}': {}", list, why.message()));
  };
  if (HoldsSounds(*source)) {
    auto of_sounds = SoundAugmentation::Parse(list, seed);
    if (!of_sounds.ok()) return wrong(of_sounds.status());
    return AugmentSounds(std::move(source), std::move(*of_sounds));
  }
  if (HoldsPoints(*source)) {
    auto of_points = PointAugmentation::Parse(list, seed);
    if (!of_points.ok()) return wrong(of_points.status());
    return AugmentPoints(std::move(source), std::move(*of_points));
  }
  Result<Augmentation> augmentation = Augmentation::Parse(list, seed);
  if (!augmentation.ok()) return wrong(augmentation.status());
  const Mixing mixing = augmentation->mixing();
  if (!augmentation->changes_nothing()) {
    RIDGE_ASSIGN_OR_RETURN(source,
                           AugmentSource::Create(std::move(source), std::move(*augmentation)));
  }
  return mixing.any() ? MixSource::Create(std::move(source), mixing) : std::move(source);
}

Result<PictureFieldShape> FindPictureField(const Source& source) {
  const Field* field = FindFieldByName("image", source.fields());
  std::optional<PictureShape> shape = field == nullptr ? std::nullopt : ShapeOf(field->type);
  if (!shape) {
    const std::string is =
        field == nullptr ? "there is no field of that name" : "it is " + TypeToString(field->type);
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: has no pictures to augment: 'image' must be u8[H,W] or "
                              "u8[H,W,3]; {}",
                              source.name(), is));
  }
  shape->erased = MeanOf(field->normalization);
  return PictureFieldShape{static_cast<int>(field - source.fields().data()), *shape};
}

Result<SourcePtr> AugmentSource::Create(SourcePtr source, Augmentation augmentation) {
  RIDGE_ASSIGN_OR_RETURN(const PictureFieldShape field, FindPictureField(*source));
  return SourcePtr(
      new AugmentSource(std::move(source), std::move(augmentation), field.index, field.shape));
}

AugmentSource::AugmentSource(SourcePtr source, Augmentation augmentation, int field,
                             const PictureShape& shape)
    : Source(source->name(), source->fields(), source->size()),
      source_(std::move(source)),
      augmentation_(std::move(augmentation)),
      picture_(field),
      shape_(shape) {}

ResizeCall AugmentSource::WholeCall() const {
  const ImageSize size{shape_.height, shape_.width};
  return FitPicture(size, size, ImageFit::kStretch, ResizeFilter::kBilinear, shape_.channels);
}

int64_t AugmentSource::scratch_bytes() const {
  int64_t bytes = std::max(source_->scratch_bytes(), augmentation_.scratch_bytes(shape_));
  if (!cuts_itself()) return bytes;
  bytes = std::max(bytes, MostResizeScratchBytes(WholeCall()));
  return RoundUp(shape_.bytes() + kResizeSlackBytes, kAlignment) + bytes;
}

const void* AugmentSource::View(int64_t index, int field) const {
  return field == picture_ ? nullptr : source_->View(index, field);
}

Status AugmentSource::Read(SampleAt at, int field, std::span<char> scratch, void* out) const {
  if (field != picture_) return source_->Read(at, field, scratch, out);
  auto* pixels = static_cast<uint8_t*>(out);
  if (cuts_itself()) {
    RIDGE_RETURN_IF_ERROR(ReadCrop(at, scratch, pixels));
  } else {
    CropDraw crop;
    SampleAt asked = at;
    if (augmentation_.crops()) {
      crop = augmentation_.Crop(at.epoch, at.index);
      asked.crop = &crop;
    }
    RIDGE_RETURN_IF_ERROR(source_->Read(asked, field, scratch, pixels));
  }
  const StageTimer timer(at.stages, InputStage::kAugment);
  augmentation_.Apply(shape_, at.epoch, at.index, scratch, pixels);
  return Status();
}

// The box of a picture that has its final size already, resized to it.
Status AugmentSource::ReadCrop(SampleAt at, std::span<char> scratch, uint8_t* out) const {
  const auto whole = static_cast<size_t>(RoundUp(shape_.bytes() + kResizeSlackBytes, kAlignment));
  auto* picture = reinterpret_cast<uint8_t*>(scratch.data());
  const std::span<char> rest = scratch.subspan(whole);
  RIDGE_RETURN_IF_ERROR(source_->Read(at, picture_, rest, picture));
  const StageTimer timer(at.stages, InputStage::kResize);
  const PictureBox box =
      DrawCrop(augmentation_.Crop(at.epoch, at.index), shape_.height, shape_.width);
  ResizeCall call = WholeCall();
  call.x = ResizeAxis::Whole(box.width, shape_.width);
  call.y = ResizeAxis::Whole(box.height, shape_.height);
  call.stride = shape_.width * shape_.channels;
  Resize(call, picture + box.top * call.stride + box.left * shape_.channels, rest, out);
  return Status();
}

}  // namespace ridge
