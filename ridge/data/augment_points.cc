#include "ridge/data/augment_points.h"

#include <utility>

#include "ridge/core/stage_times.h"

namespace ridge {
namespace {

class AugmentPointsSource : public Source {
 public:
  AugmentPointsSource(SourcePtr source, PointAugmentation augmentation)
      : Source(source->name(), source->fields(), source->size()),
        source_(std::move(source)),
        augmentation_(std::move(augmentation)),
        points_(source_->FindField("points")) {}

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override {
    if (field != points_) return source_->Read(at, field, scratch, out);
    CropDraw draw;
    SampleAt asked = at;
    if (augmentation_.draws()) {
      draw = augmentation_.Draw(at.epoch, at.index);
      asked.crop = &draw;
    }
    RIDGE_RETURN_IF_ERROR(source_->Read(asked, field, scratch, out));
    const StageTimer timer(at.stages, InputStage::kAugment);
    augmentation_.Apply(at.epoch, at.index, fields()[static_cast<size_t>(field)].type.dims[0],
                        static_cast<float*>(out));
    return Status();
  }
  int64_t scratch_bytes() const override { return source_->scratch_bytes(); }
  int64_t heap_bytes() const override { return source_->heap_bytes(); }
  bool reads_slowly() const override { return true; }
  std::string Origin(int64_t index) const override { return source_->Origin(index); }
  std::string OriginAt(SampleAt at) const override { return source_->OriginAt(at); }
  int64_t resident_bytes() const override { return source_->resident_bytes(); }
  const Source* storage() const override { return source_->storage(); }

 private:
  const SourcePtr source_;
  const PointAugmentation augmentation_;
  const int points_;  // the field
};

}  // namespace

bool HoldsPoints(const Source& source) {
  return source.reads_crops() && source.FindField("points") >= 0;
}

SourcePtr AugmentPoints(SourcePtr source, PointAugmentation augmentation) {
  return std::make_shared<AugmentPointsSource>(std::move(source), std::move(augmentation));
}

}  // namespace ridge
