// MapSource: a source whose fields are a model's inputs, converted from another source's on
// reading.
#pragma once
#include <mutex>
#include <vector>

#include "ridge/data/batch_spec.h"

namespace ridge {

class MapSource : public Source {
 public:
  // Fails as MatchFields does.
  static Result<SourcePtr> Create(SourcePtr source, const BatchSpec& spec);

  // Straight from the other source's memory where it has a View.
  Status Read(int64_t index, int field, void* out) const override;
  int64_t resident_bytes() const override { return source_->resident_bytes() + scratch_bytes(); }
  const Source* storage() const override { return source_->storage(); }

  // For one sample of a source that has no View.
  int64_t scratch_bytes() const { return static_cast<int64_t>(scratch_.size()); }

 private:
  MapSource(SourcePtr source, std::vector<Field> fields, std::vector<FieldMap> maps);

  SourcePtr source_;
  std::vector<FieldMap> maps_;  // one a field
  mutable std::mutex mutex_;    // guards scratch_
  mutable std::vector<char> scratch_;
};

}  // namespace ridge
