#include "ridge/data/memory_cache.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "ridge/data/encoded_samples.h"
#include "ridge/data/memory_source.h"

namespace ridge {
namespace {

enum class Kept : uint8_t { kNot, kBeingWritten, kWhole };

class MemoryCacheSource : public Source {
 public:
  MemoryCacheSource(SourcePtr source, int64_t samples, int64_t row_bytes, Tensor values,
                    std::vector<SourcePtr> counted)
      : Source(source->name(), source->fields(), source->size()),
        source_(std::move(source)),
        samples_(samples),
        row_bytes_(row_bytes),
        values_(std::move(values)),
        kept_(static_cast<size_t>(samples) * fields().size()),
        counted_(std::move(counted)) {
    for (const Field& field : fields()) begins_.push_back(begins_.back() + field.type.bytes());
  }

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override {
    if (at.crop != nullptr || at.index >= samples_) return source_->Read(at, field, scratch, out);
    const auto f = static_cast<size_t>(field);
    const auto bytes = static_cast<size_t>(fields()[f].type.bytes());
    std::atomic<Kept>& kept = kept_[static_cast<size_t>(at.index) * fields().size() + f];
    char* const place = values_.as_mutable<char>() + at.index * row_bytes_ + begins_[f];
    if (kept.load(std::memory_order_acquire) == Kept::kWhole) {
      const StageTimer timer(at.stages, InputStage::kRead);
      std::memcpy(out, place, bytes);
      return Status();
    }
    RIDGE_RETURN_IF_ERROR(source_->Read(at, field, scratch, out));
    Kept expected = Kept::kNot;
    if (!kept.compare_exchange_strong(expected, Kept::kBeingWritten)) return Status();
    std::memcpy(place, out, bytes);
    kept.store(Kept::kWhole, std::memory_order_release);
    return Status();
  }
  int64_t scratch_bytes() const override { return source_->scratch_bytes(); }
  int64_t heap_bytes() const override { return source_->heap_bytes(); }
  bool reads_slowly() const override { return true; }
  bool reads_crops() const override { return source_->reads_crops(); }
  std::string Origin(int64_t index) const override { return source_->Origin(index); }
  std::string OriginAt(SampleAt at) const override { return source_->OriginAt(at); }
  int64_t resident_bytes() const override {
    std::vector<SourcePtr> sources = counted_;
    sources.push_back(source_);
    return ResidentBytes(sources) - ResidentBytes(counted_) + values_.type().bytes() +
           static_cast<int64_t>(kept_.size() * sizeof(Kept));
  }

 private:
  const SourcePtr source_;
  const int64_t samples_;
  const int64_t row_bytes_;
  std::vector<int64_t> begins_ = {0};            // of the fields in a row, and its end
  mutable Tensor values_;                        // [samples_ * row_bytes_]
  mutable std::vector<std::atomic<Kept>> kept_;  // of each field of each sample
  const std::vector<SourcePtr> counted_;
};

// Else a sample may be another one in each epoch.
bool IsEncoded(const EncodedSamples& source) {
  std::vector<char> buffer;
  ContentHash hash;
  return source.AddContent(0, buffer, hash).code() != ErrorCode::kUnsupported;
}

}  // namespace

Result<MemoryCached> CacheDecodedInMemory(const SourcePtr& source, int64_t limit_bytes,
                                          const std::vector<SourcePtr>& counted) {
  const auto* encoded = dynamic_cast<const EncodedSamples*>(source.get());
  if (encoded == nullptr || !IsEncoded(*encoded)) {
    return Status(ErrorCode::kUnsupported,
                  source->name() + ": its samples do not lie encoded in files, so none are cached");
  }
  int64_t row_bytes = 0;
  for (const Field& field : source->fields()) row_bytes += field.type.bytes();
  const int64_t each = row_bytes + static_cast<int64_t>(source->fields().size() * sizeof(Kept));
  MemoryCached cached;
  cached.samples = std::min(source->size(), std::max<int64_t>(0, limit_bytes) / each);
  cached.bytes = cached.samples * each;
  cached.source = source;
  if (cached.samples == 0) return cached;
  RIDGE_ASSIGN_OR_RETURN(Tensor values,
                         MakeTensor(source->name(), {DType::kU8, {cached.samples * row_bytes}}));
  cached.source = std::make_shared<MemoryCacheSource>(source, cached.samples, row_bytes,
                                                      std::move(values), counted);
  return cached;
}

}  // namespace ridge
