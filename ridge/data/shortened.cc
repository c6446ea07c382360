#include "ridge/data/shortened.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ridge/core/rounding.h"
#include "ridge/core/status.h"

namespace ridge {
namespace {

constexpr int64_t kScratchAlignment = 64;  // of the source's scratch behind our own

std::vector<Field> Shortened(std::vector<Field> fields, int64_t whole, int64_t length) {
  for (Field& field : fields) {
    if (field.type.rank() > 0 && field.type.dims[0] == whole) field.type.dims[0] = length;
  }
  return fields;
}

int64_t LargestField(const Source& source) {
  int64_t largest = 0;
  for (const Field& field : source.fields()) largest = std::max(largest, field.type.bytes());
  return RoundUp(largest, kScratchAlignment);
}

}  // namespace

ShortenedSource::ShortenedSource(SourcePtr source, int64_t whole, int64_t length,
                                 bool padded_in_front)
    : Source(source->name(), Shortened(source->fields(), whole, length), source->size()),
      source_(std::move(source)),
      padded_in_front_(padded_in_front),
      own_scratch_(LargestField(*source_)) {
  RIDGE_CHECK(1 <= length && length <= whole, "a sample is cut, not extended");
}

int64_t ShortenedSource::ScratchBytes(const Source& source) {
  return LargestField(source) + source.scratch_bytes();
}

Status ShortenedSource::Read(SampleAt at, int field, std::span<char> scratch, void* out) const {
  const auto own = static_cast<size_t>(own_scratch_);
  const auto f = static_cast<size_t>(field);
  const int64_t bytes = fields()[f].type.bytes();
  const int64_t whole = source_->fields()[f].type.bytes();
  if (bytes == whole) return source_->Read(at, field, scratch.subspan(own), out);
  RIDGE_RETURN_IF_ERROR(source_->Read(at, field, scratch.subspan(own), scratch.data()));
  const int64_t begin = padded_in_front_ ? whole - bytes : 0;
  std::memcpy(out, scratch.data() + begin, static_cast<size_t>(bytes));
  return Status();
}

}  // namespace ridge
