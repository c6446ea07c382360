// AugmentSource: a source whose pictures are changed at random, as functions of (seed, epoch,
// index): for training sets alone.  A field `boxes` f32[N,4] and masks (FindMaskField) move with
// their pictures.  All frames of a clip are changed by the same draws.
#pragma once
#include "ridge/data/image/transforms/augmentation.h"
#include "ridge/data/source.h"

namespace ridge {

// The field of a source that holds its pictures.
struct PictureFieldShape {
  int index = 0;
  PictureShape shape;  // erased pixels become the mean that normalization subtracts
  int64_t frames = 1;  // of a clip, one behind the other

  int64_t bytes() const { return frames * shape.bytes(); }
};

// The field `image`, or another name of its group.  Fails with kInvalidData when it is not u8[H,W],
// u8[H,W,1], u8[H,W,3], or clips u8[N,H,W,1] or u8[N,H,W,3].
Result<PictureFieldShape> FindPictureField(const Source& source);

// A training set with the transforms of `list`, "flip,crop:4,mixup:0.2": augmented, then mixed.
// Pictures may have their channels first, and keep that order.  Fails with kInvalidArgument when it
// is no such list, and as FindPictureField and MixSource do.
Result<SourcePtr> AugmentTraining(SourcePtr source, const std::string& list, uint64_t seed);

class AugmentSource : public Source {
 public:
  // Fails as FindPictureField does, and with kInvalidArgument for boxes that a transform loses; the
  // message is then the bare reason.
  static Result<SourcePtr> Create(SourcePtr source, Augmentation augmentation);

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override;
  int64_t scratch_bytes() const override;
  int64_t heap_bytes() const override { return source_->heap_bytes(); }
  bool reads_slowly() const override { return true; }
  const void* View(int64_t index, int field) const override;
  std::string Origin(int64_t index) const override { return source_->Origin(index); }
  std::string OriginAt(SampleAt at) const override { return source_->OriginAt(at); }
  int64_t resident_bytes() const override { return source_->resident_bytes(); }
  const Source* storage() const override { return source_->storage(); }

 private:
  AugmentSource(SourcePtr source, Augmentation augmentation, const PictureFieldShape& field);
  bool cuts_itself() const { return augmentation_.crops() && !source_->reads_crops(); }
  ResizeCall WholeCall() const;
  Status ReadBoxes(SampleAt at, std::span<char> scratch, void* out) const;
  ResizeCall MaskCall() const;
  int64_t mask_scratch_bytes() const;
  Status ReadPicture(SampleAt at, std::span<char> scratch, uint8_t* out) const;
  Status ReadSource(SampleAt at, int field, std::span<char> scratch, void* out) const;
  Status ReadCrop(SampleAt at, std::span<char> scratch, uint8_t* out) const;
  Status ReadMask(SampleAt at, std::span<char> scratch, void* out) const;
  void CutMask(SampleAt at, std::span<char> scratch, uint8_t* ids) const;
  void ResizeBox(SampleAt at, ResizeCall call, const uint8_t* from, std::span<char> scratch,
                 uint8_t* out) const;

  const SourcePtr source_;
  const Augmentation augmentation_;
  // Fields; -1: there is none.
  const int picture_, boxes_, mask_;
  const PictureShape shape_;
  const int64_t frames_;
};

}  // namespace ridge
