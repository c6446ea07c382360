// SubsetSource: a part of another source, in its order or permuted.  Copies nothing.
#pragma once
#include <optional>
#include <string>

#include "ridge/data/encoded_samples.h"
#include "ridge/data/permutation.h"
#include "ridge/data/source.h"

namespace ridge {

class SubsetSource : public Source, public EncodedSamples {
 public:
  // Samples begin .. begin + count - 1 of `source`, or of its samples as `order` permutes them.
  // REQUIRES: the range lies in the source; `order` has the source's size.
  SubsetSource(SourcePtr source, int64_t begin, int64_t count,
               std::optional<Permutation> order = std::nullopt);

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override;
  int64_t scratch_bytes() const override { return source_->scratch_bytes(); }
  int64_t heap_bytes() const override { return source_->heap_bytes(); }
  bool reads_slowly() const override { return source_->reads_slowly(); }
  bool reads_crops() const override { return source_->reads_crops(); }
  bool draws_by_epoch() const override { return source_->draws_by_epoch(); }
  const void* View(int64_t index, int field) const override;
  std::string Origin(int64_t index) const override { return source_->Origin(Original(index)); }
  std::string OriginAt(SampleAt at) const override {
    return source_->OriginAt(at.WithIndex(Original(at.index)));
  }
  int64_t resident_bytes() const override { return source_->resident_bytes(); }
  const Source* storage() const override { return source_->storage(); }
  Status AddContent(int64_t index, std::vector<char>& buffer, ContentHash& hash) const override;

 private:
  int64_t Original(int64_t index) const;

  SourcePtr source_;
  int64_t begin_;
  std::optional<Permutation> order_;
};

}  // namespace ridge
