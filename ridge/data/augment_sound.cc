#include "ridge/data/augment_sound.h"

#include <fmt/format.h>

#include <utility>

#include "ridge/core/stage_times.h"

namespace ridge {
namespace {

int SoundFieldOf(const Source& source) {
  const int features = source.FindField("features");
  return features >= 0 ? features : source.FindField("audio");
}

class AugmentSoundSource : public Source {
 public:
  AugmentSoundSource(SourcePtr source, SoundAugmentation augmentation)
      : Source(source->name(), source->fields(), source->size()),
        source_(std::move(source)),
        augmentation_(std::move(augmentation)),
        sound_(SoundFieldOf(*source_)) {}

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override {
    if (field != sound_) return source_->Read(at, field, scratch, out);
    CropDraw cut;
    SampleAt asked = at;
    if (augmentation_.cuts()) {
      cut = augmentation_.Cut(at.epoch, at.index);
      asked.crop = &cut;
    }
    RIDGE_RETURN_IF_ERROR(source_->Read(asked, field, scratch, out));
    const StageTimer timer(at.stages, InputStage::kAugment);
    augmentation_.Apply(fields()[static_cast<size_t>(field)].type.dims, at.epoch, at.index,
                        static_cast<float*>(out));
    return Status();
  }
  int64_t scratch_bytes() const override { return source_->scratch_bytes(); }
  int64_t heap_bytes() const override { return source_->heap_bytes(); }
  bool reads_slowly() const override { return true; }
  std::string Origin(int64_t index) const override { return source_->Origin(index); }
  int64_t resident_bytes() const override { return source_->resident_bytes(); }
  const Source* storage() const override { return source_->storage(); }

 private:
  const SourcePtr source_;
  const SoundAugmentation augmentation_;
  const int sound_;  // the field
};

}  // namespace

bool HoldsSounds(const Source& source) { return source.reads_crops() && SoundFieldOf(source) >= 0; }

Result<SourcePtr> AugmentSounds(SourcePtr source, SoundAugmentation augmentation) {
  const Field& field = source->fields()[static_cast<size_t>(SoundFieldOf(*source))];
  if (augmentation.cuts() && source->FindField("text_length") >= 0) {
    return InvalidArgument(fmt::format(
        "{}: cut parts a sound from its text. hint: timemask,freqmask", source->name()));
  }
  if (augmentation.masks() && field.type.dims.size() != 2) {
    return InvalidArgument(fmt::format("{}: timemask and freqmask need a spectrogram; '{}' is {}",
                                       source->name(), field.name, TypeToString(field.type)));
  }
  return SourcePtr(
      std::make_shared<AugmentSoundSource>(std::move(source), std::move(augmentation)));
}

}  // namespace ridge
