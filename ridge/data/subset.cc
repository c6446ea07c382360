// Validation samples are the first positions of a permutation, training samples the rest, so the
// split is a function of (size, seed) and needs no list.
#include "ridge/data/subset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ridge/core/random.h"

namespace ridge {
namespace {

Result<SourcePtr> TakePart(const SourcePtr& source, int64_t count, bool from_end) {
  if (count < 1 || count > source->size()) {
    return InvalidArgument(fmt::format("{}: cannot take {} samples, it has {}", source->name(),
                                       count, source->size()));
  }
  const int64_t begin = from_end ? source->size() - count : 0;
  return SourcePtr(std::make_shared<SubsetSource>(source, begin, count));
}

}  // namespace

SubsetSource::SubsetSource(SourcePtr source, int64_t begin, int64_t count,
                           std::optional<Permutation> order)
    : Source(source->name(), source->fields(), count),
      source_(std::move(source)),
      begin_(begin),
      order_(order) {
  RIDGE_CHECK(begin >= 0 && begin + count <= source_->size(), "the subset lies in the source");
}

int64_t SubsetSource::Original(int64_t index) const {
  return order_ ? order_->At(begin_ + index) : begin_ + index;
}

Status SubsetSource::Read(SampleAt at, int field, std::span<char> scratch, void* out) const {
  return source_->Read(at.WithIndex(Original(at.index)), field, scratch, out);
}

const void* SubsetSource::View(int64_t index, int field) const {
  return source_->View(Original(index), field);
}

Status SubsetSource::AddContent(int64_t index, std::vector<char>& buffer, ContentHash& hash) const {
  const auto* encoded = dynamic_cast<const EncodedSamples*>(source_.get());
  if (encoded != nullptr) return encoded->AddContent(Original(index), buffer, hash);
  return Status(ErrorCode::kUnsupported, name() + ": its samples do not lie encoded in files");
}

Result<SourcePtr> TakeFirst(const SourcePtr& source, int64_t count) {
  return TakePart(source, count, /*from_end=*/false);
}

Result<SourcePtr> TakeLast(const SourcePtr& source, int64_t count) {
  return TakePart(source, count, /*from_end=*/true);
}

Result<ValidationSplit> SplitValidation(const SourcePtr& source, double fraction, uint64_t seed) {
  if (!(fraction > 0 && fraction < 1)) {
    return InvalidArgument(
        fmt::format("{}: the validation fraction is {}, it must lie between 0 and 1",
                    source->name(), fraction));
  }
  const int64_t size = source->size();
  const int64_t held_out = std::max<int64_t>(1, std::llround(fraction * static_cast<double>(size)));
  if (held_out >= size) {
    return InvalidArgument(
        fmt::format("{}: a validation fraction of {} takes {} of {} samples and leaves "
                    "none to train on",
                    source->name(), fraction, held_out, size));
  }
  const Permutation order(size, seed, StableHash("validation split"), /*epoch=*/0);
  return ValidationSplit{std::make_shared<SubsetSource>(source, held_out, size - held_out, order),
                         std::make_shared<SubsetSource>(source, 0, held_out, order)};
}

}  // namespace ridge
