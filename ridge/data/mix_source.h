// MixSource: a source whose pictures are each mixed with another one's, and their labels with them.
//
// The field `label` is the class that weighs more, and two fields are added: the other class, and
// the weight of `label`, at least 1/2.  A sample's partner is another sample of the whole set, by a
// permutation of (seed, epoch), so that each is the partner of one; torchvision takes it from the
// same batch.  So the result does not depend on the batch, but a partner is read for each sample.
#pragma once
#include "ridge/data/augment_source.h"
#include "ridge/data/image/transforms/mixing.h"
#include "ridge/data/source.h"

namespace ridge {

inline constexpr char kOtherLabelField[] = "ridge.other_label";
inline constexpr char kLabelWeightField[] = "ridge.label_weight";

class MixSource : public Source {
 public:
  // Fails as FindPictureField does, and with kInvalidData without a label of one class a sample.
  static Result<SourcePtr> Create(SourcePtr source, const Mixing& mixing);

  // A partner that cannot be read leaves a picture as it is: it is told when it is read itself.
  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override;
  int64_t scratch_bytes() const override;
  int64_t heap_bytes() const override { return source_->heap_bytes(); }
  bool reads_slowly() const override { return true; }
  std::string Origin(int64_t index) const override { return source_->Origin(index); }
  std::string OriginAt(SampleAt at) const override { return source_->OriginAt(at); }
  int64_t resident_bytes() const override { return source_->resident_bytes(); }
  const Source* storage() const override { return source_->storage(); }

 private:
  MixSource(SourcePtr source, std::vector<Field> fields, const Mixing& mixing,
            const PictureFieldShape& picture, int label);
  int64_t PartnerOf(SampleAt at) const;
  Status ReadPicture(SampleAt at, std::span<char> scratch, uint8_t* out) const;

  const SourcePtr source_;
  const Mixing mixing_;
  const PictureFieldShape picture_;
  const int label_;
};

}  // namespace ridge
