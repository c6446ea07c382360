// MapSource: a source whose fields are a model's inputs, converted from another source's on
// reading.
#pragma once
#include <vector>

#include "ridge/data/batch_spec.h"

namespace ridge {

class MapSource : public Source {
 public:
  // Fails as MatchFields does.
  static Result<SourcePtr> Create(SourcePtr source, const BatchSpec& spec);

  // The scratch that one sample takes beside the source's, to be converted: 0 where each input is
  // read as it is; with inputs that the fields cannot fill, the largest field.
  static int64_t ConversionBytes(const Source& source, const BatchSpec& spec);

  // Straight from the other source's memory where it has a View.
  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override;
  int64_t scratch_bytes() const override { return own_scratch_ + source_->scratch_bytes(); }
  int64_t heap_bytes() const override { return source_->heap_bytes(); }
  bool reads_slowly() const override { return source_->reads_slowly(); }
  std::string Origin(int64_t index) const override { return source_->Origin(index); }
  std::string OriginAt(SampleAt at) const override { return source_->OriginAt(at); }
  int64_t resident_bytes() const override { return source_->resident_bytes(); }
  const Source* storage() const override { return source_->storage(); }

 private:
  MapSource(SourcePtr source, std::vector<Field> fields, std::vector<FieldMap> maps);

  SourcePtr source_;
  std::vector<FieldMap> maps_;  // one a field
  int64_t own_scratch_ = 0;     // for one sample of a source that has no View
};

}  // namespace ridge
