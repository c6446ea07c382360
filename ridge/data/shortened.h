// ShortenedSource: another source's samples cut to fewer tokens, for batches of one length.
#pragma once
#include <vector>

#include "ridge/data/source.h"

namespace ridge {

class ShortenedSource : public Source {
 public:
  // Fields whose first extent is `whole` have `length` instead: the first entries, or the last ones
  // where the padding stands in front.  REQUIRES: 1 <= length <= whole.
  ShortenedSource(SourcePtr source, int64_t whole, int64_t length, bool padded_in_front);

  // Of this around `source`.
  static int64_t ScratchBytes(const Source& source);

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override;
  int64_t scratch_bytes() const override { return ScratchBytes(*source_); }
  int64_t heap_bytes() const override { return source_->heap_bytes(); }
  bool reads_slowly() const override { return source_->reads_slowly(); }
  std::string Origin(int64_t index) const override { return source_->Origin(index); }
  std::string OriginAt(SampleAt at) const override { return source_->OriginAt(at); }
  int64_t resident_bytes() const override { return source_->resident_bytes(); }
  const Source* storage() const override { return source_->storage(); }

 private:
  const SourcePtr source_;
  const bool padded_in_front_;
  const int64_t own_scratch_;  // for one whole field
};

}  // namespace ridge
