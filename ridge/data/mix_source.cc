#include "ridge/data/mix_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ridge/core/rounding.h"
#include "ridge/data/batch_spec.h"
#include "ridge/data/permutation.h"

namespace ridge {
namespace {

constexpr int64_t kAlignment = 64;

}  // namespace

Result<SourcePtr> MixSource::Create(SourcePtr source, const Mixing& mixing) {
  RIDGE_ASSIGN_OR_RETURN(const PictureFieldShape picture, FindPictureField(*source));
  const Field* label = FindFieldByName("label", source->fields());
  if (label == nullptr || label->classes < 1 || label->type.elements() != 1) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: has no classes to mix: mixup and cutmix need a 'label' that is "
                              "one class a sample",
                              source->name()));
  }
  const auto at = static_cast<int>(label - source->fields().data());
  std::vector<Field> fields = source->fields();
  fields.push_back({kOtherLabelField, label->type, label->classes});
  fields.push_back({kLabelWeightField, {DType::kF32, {}}});
  return SourcePtr(new MixSource(std::move(source), std::move(fields), mixing, picture, at));
}

MixSource::MixSource(SourcePtr source, std::vector<Field> fields, const Mixing& mixing,
                     const PictureFieldShape& picture, int label)
    : Source(source->name(), std::move(fields), source->size()),
      source_(std::move(source)),
      mixing_(mixing),
      picture_(picture),
      label_(label) {}

int64_t MixSource::scratch_bytes() const {
  return RoundUp(picture_.bytes(), kAlignment) + source_->scratch_bytes();
}

int64_t MixSource::PartnerOf(SampleAt at) const {
  return Permutation(size(), mixing_.seed, StableHash("mix partner"), at.epoch).At(at.index);
}

Status MixSource::Read(SampleAt at, int field, std::span<char> scratch, void* out) const {
  if (field == picture_.index) return ReadPicture(at, scratch, static_cast<uint8_t*>(out));
  const auto added = field - static_cast<int>(source_->fields().size());
  if (field != label_ && added < 0) return source_->Read(at, field, scratch, out);
  const double weight = DrawMix(mixing_, at.epoch, at.index, picture_.shape).weight;
  if (added == 1) {
    *static_cast<float*>(out) = static_cast<float>(std::max(weight, 1 - weight));
    return Status();
  }
  const bool own = (field == label_) == (weight >= 0.5);
  return source_->Read(own ? at : at.WithIndex(PartnerOf(at)), label_, scratch, out);
}

Status MixSource::ReadPicture(SampleAt at, std::span<char> scratch, uint8_t* out) const {
  auto* other = reinterpret_cast<uint8_t*>(scratch.data());
  const std::span<char> rest =
      scratch.subspan(static_cast<size_t>(RoundUp(picture_.bytes(), kAlignment)));
  RIDGE_RETURN_IF_ERROR(source_->Read(at, picture_.index, rest, out));
  const Status read = source_->Read(at.WithIndex(PartnerOf(at)), picture_.index, rest, other);
  if (IsBadRecord(read)) return Status();
  RIDGE_RETURN_IF_ERROR(read);
  const StageTimer timer(at.stages, InputStage::kAugment);
  const PictureShape& shape = picture_.shape;
  const MixDraw draw = DrawMix(mixing_, at.epoch, at.index, shape);
  for (int64_t at_byte = 0; at_byte < picture_.bytes(); at_byte += shape.bytes())
    Mix(shape, draw, other + at_byte, out + at_byte);
  return Status();
}

}  // namespace ridge
