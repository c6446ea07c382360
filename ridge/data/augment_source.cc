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
#include "ridge/data/mask_folder.h"
#include "ridge/data/mix_source.h"
#include "ridge/data/plane_source.h"

namespace ridge {
namespace {

constexpr int64_t kAlignment = 64;

bool IsChannels(int64_t extent) { return extent == 1 || extent == 3; }

std::optional<PictureFieldShape> ShapeOf(const TensorType& type) {
  if (type.dtype != DType::kU8) return std::nullopt;
  PictureFieldShape field;
  Dims dims = type.dims;
  if (dims.size() == 4) {
    field.frames = dims[0];
    dims.erase(dims.begin());
  }
  if (dims.size() == 3 && IsChannels(dims[2])) {
    field.shape = {dims[0], dims[1], static_cast<int>(dims[2]), {}};
    return field;
  }
  if (type.dims.size() != 2) return std::nullopt;
  field.shape = {dims[0], dims[1], /*channels=*/1, {}};
  return field;
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

// -1 when there is none.
int FindBoxes(const Source& source) {
  const int field = source.FindField("boxes");
  if (field < 0) return -1;
  const TensorType& type = source.fields()[static_cast<size_t>(field)].type;
  const bool boxes = type.dtype == DType::kF32 && type.rank() == 2 && type.dims[1] == 4;
  return boxes ? field : -1;
}

int MaskFieldOf(const Source& source) {
  const Field* mask = FindMaskField(source.fields());
  return mask == nullptr ? -1 : static_cast<int>(mask - source.fields().data());
}

// Labels to bytes: 0 is no class, else the class and 1.
Status PackLabels(const Source& source, int64_t index, const TensorType& type, const void* labels,
                  uint8_t* ids) {
  for (int64_t i = 0; i < type.elements(); ++i) {
    const double label = LoadAsDouble(type.dtype, labels, i);
    const bool ignored = label == static_cast<double>(kIgnoredLabel);
    if (!ignored && (label < 0 || label >= static_cast<double>(kMostMaskClasses))) {
      return Status(ErrorCode::kInvalidData,
                    fmt::format("{}: has a pixel of class {}; masks that are augmented have 0 to "
                                "{}, or {}",
                                source.Origin(index), label, kMostMaskClasses - 1, kIgnoredLabel));
    }
    ids[i] = static_cast<uint8_t>(ignored ? 0 : label + 1);
  }
  return Status();
}

void UnpackLabels(const TensorType& type, const uint8_t* ids, void* labels) {
  for (int64_t i = 0; i < type.elements(); ++i) {
    const int64_t label = ids[i] == 0 ? kIgnoredLabel : ids[i] - 1;
    StoreFromDouble(type.dtype, labels, i, static_cast<double>(label));
  }
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
  if (FindBoxes(*source) >= 0) {
    if (const Status moves = augmentation->MovesBoxes(); !moves.ok()) return wrong(moves);
  }
  const Mixing mixing = augmentation->mixing();
  const int planes = FindPlanes(*source);
  if (planes >= 0) source = ReorderPlanes(std::move(source), planes, PlaneOrder::kLast);
  if (!augmentation->changes_nothing()) {
    RIDGE_ASSIGN_OR_RETURN(source,
                           AugmentSource::Create(std::move(source), std::move(*augmentation)));
  }
  if (mixing.any()) {
    RIDGE_ASSIGN_OR_RETURN(source, MixSource::Create(std::move(source), mixing));
  }
  if (planes >= 0) source = ReorderPlanes(std::move(source), planes, PlaneOrder::kFirst);
  return source;
}

Result<PictureFieldShape> FindPictureField(const Source& source) {
  const Field* field = FindFieldByName("image", source.fields());
  std::optional<PictureFieldShape> found = field == nullptr ? std::nullopt : ShapeOf(field->type);
  if (!found) {
    const std::string is =
        field == nullptr ? "there is no field of that name" : "it is " + TypeToString(field->type);
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: has no pictures to augment: 'image' must be u8[H,W], "
                              "u8[H,W,3], u8[3,H,W] or u8[N,H,W,3]; {}",
                              source.name(), is));
  }
  found->shape.erased = MeanOf(field->normalization);
  found->index = static_cast<int>(field - source.fields().data());
  return *found;
}

Result<SourcePtr> AugmentSource::Create(SourcePtr source, Augmentation augmentation) {
  if (FindBoxes(*source) >= 0) RIDGE_RETURN_IF_ERROR(augmentation.MovesBoxes());
  RIDGE_ASSIGN_OR_RETURN(const PictureFieldShape field, FindPictureField(*source));
  return SourcePtr(new AugmentSource(std::move(source), std::move(augmentation), field));
}

AugmentSource::AugmentSource(SourcePtr source, Augmentation augmentation,
                             const PictureFieldShape& field)
    : Source(source->name(), source->fields(), source->size()),
      source_(std::move(source)),
      augmentation_(std::move(augmentation)),
      picture_(field.index),
      boxes_(FindBoxes(*source_)),
      mask_(MaskFieldOf(*source_)),
      shape_(field.shape),
      frames_(field.frames) {}

ResizeCall AugmentSource::WholeCall() const {
  const ImageSize size{shape_.height, shape_.width};
  return FitPicture(size, size, ImageFit::kStretch, ResizeFilter::kBilinear, shape_.channels);
}

// Of a mask, whose bytes are nearest to the picture's.
ResizeCall AugmentSource::MaskCall() const {
  ResizeCall call = WholeCall();
  call.channels = 1;
  call.filter = ResizeFilter::kNearest;
  return call;
}

int64_t AugmentSource::scratch_bytes() const {
  int64_t bytes = std::max(source_->scratch_bytes(), augmentation_.scratch_bytes(shape_));
  if (cuts_itself()) {
    bytes = std::max(bytes, MostResizeScratchBytes(WholeCall()));
    bytes += RoundUp(frames_ * shape_.bytes() + kResizeSlackBytes, kAlignment);
  }
  return mask_ < 0 ? bytes : std::max(bytes, mask_scratch_bytes());
}

// The ids, and twice while they are cut.
int64_t AugmentSource::mask_scratch_bytes() const {
  const int64_t ids = RoundUp(shape_.pixels() + kResizeSlackBytes, kAlignment);
  return 2 * ids +
         std::max(augmentation_.scratch_bytes(shape_), MostResizeScratchBytes(MaskCall()));
}

const void* AugmentSource::View(int64_t index, int field) const {
  const bool moves = field == picture_ || field == boxes_ || field == mask_;
  return moves ? nullptr : source_->View(index, field);
}

Status AugmentSource::Read(SampleAt at, int field, std::span<char> scratch, void* out) const {
  if (field == boxes_) return ReadBoxes(at, scratch, out);
  if (field == mask_) return ReadMask(at, scratch, out);
  if (field != picture_) return source_->Read(at, field, scratch, out);
  return ReadPicture(at, scratch, static_cast<uint8_t*>(out));
}

Status AugmentSource::ReadPicture(SampleAt at, std::span<char> scratch, uint8_t* pixels) const {
  if (cuts_itself()) {
    RIDGE_RETURN_IF_ERROR(ReadCrop(at, scratch, pixels));
  } else {
    RIDGE_RETURN_IF_ERROR(ReadSource(at, picture_, scratch, pixels));
  }
  const StageTimer timer(at.stages, InputStage::kAugment);
  for (int64_t frame = 0; frame < frames_; ++frame)
    augmentation_.Apply(shape_, at.epoch, at.index, scratch, pixels + frame * shape_.bytes());
  return Status();
}

Status AugmentSource::ReadBoxes(SampleAt at, std::span<char> scratch, void* out) const {
  RIDGE_RETURN_IF_ERROR(source_->Read(at, boxes_, scratch, out));
  const int64_t sides = fields()[static_cast<size_t>(boxes_)].type.elements();
  augmentation_.MoveBoxes(shape_, at.epoch, at.index,
                          {static_cast<float*>(out), static_cast<size_t>(sides)});
  return Status();
}

// With the random crop, where the source does it.
Status AugmentSource::ReadSource(SampleAt at, int field, std::span<char> scratch, void* out) const {
  CropDraw crop;
  if (augmentation_.crops() && source_->reads_crops()) {
    crop = augmentation_.Crop(at.epoch, at.index);
    at.crop = &crop;
  }
  return source_->Read(at, field, scratch, out);
}

// The box of a picture that has its final size already, resized to it.
Status AugmentSource::ReadCrop(SampleAt at, std::span<char> scratch, uint8_t* out) const {
  const auto whole =
      static_cast<size_t>(RoundUp(frames_ * shape_.bytes() + kResizeSlackBytes, kAlignment));
  auto* picture = reinterpret_cast<uint8_t*>(scratch.data());
  const std::span<char> rest = scratch.subspan(whole);
  RIDGE_RETURN_IF_ERROR(source_->Read(at, picture_, rest, picture));
  for (int64_t at_byte = 0; at_byte < frames_ * shape_.bytes(); at_byte += shape_.bytes())
    ResizeBox(at, WholeCall(), picture + at_byte, rest, out + at_byte);
  return Status();
}

void AugmentSource::ResizeBox(SampleAt at, ResizeCall call, const uint8_t* from,
                              std::span<char> scratch, uint8_t* out) const {
  const StageTimer timer(at.stages, InputStage::kResize);
  const PictureBox box =
      DrawCrop(augmentation_.Crop(at.epoch, at.index), shape_.height, shape_.width);
  call.x = ResizeAxis::Whole(box.width, shape_.width);
  call.y = ResizeAxis::Whole(box.height, shape_.height);
  call.stride = shape_.width * call.channels;
  Resize(call, from + box.top * call.stride + box.left * call.channels, scratch, out);
}

Status AugmentSource::ReadMask(SampleAt at, std::span<char> scratch, void* out) const {
  const TensorType& type = fields()[static_cast<size_t>(mask_)].type;
  RIDGE_RETURN_IF_ERROR(ReadSource(at, mask_, scratch, out));
  const StageTimer timer(at.stages, InputStage::kAugment);
  auto* ids = reinterpret_cast<uint8_t*>(scratch.data());
  RIDGE_RETURN_IF_ERROR(PackLabels(*source_, at.index, type, out, ids));
  const std::span<char> rest = scratch.subspan(
      static_cast<size_t>(RoundUp(shape_.pixels() + kResizeSlackBytes, kAlignment)));
  if (cuts_itself()) CutMask(at, rest, ids);
  augmentation_.ApplyToMask(shape_, at.epoch, at.index, rest, ids);
  UnpackLabels(type, ids, out);
  return Status();
}

// As ReadCrop cuts the picture.
void AugmentSource::CutMask(SampleAt at, std::span<char> scratch, uint8_t* ids) const {
  auto* whole = reinterpret_cast<uint8_t*>(scratch.data());
  std::copy_n(ids, shape_.pixels(), whole);
  at.stages = nullptr;  // within the stage that is timed
  ResizeBox(at, MaskCall(), whole,
            scratch.subspan(
                static_cast<size_t>(RoundUp(shape_.pixels() + kResizeSlackBytes, kAlignment))),
            ids);
}

}  // namespace ridge
