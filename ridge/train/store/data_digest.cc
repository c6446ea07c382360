#include "ridge/train/store/data_digest.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/core/crc32c.h"
#include "ridge/core/rounding.h"

namespace ridge {
namespace {

constexpr int64_t kMostBytes = int64_t{256} << 20;

int64_t SampleBytes(const Source& source) {
  int64_t bytes = 0;
  for (const Field& field : source.fields()) bytes += field.type.bytes();
  return bytes;
}

class Digester {
 public:
  Digester(const Source& source, BadRecords* bad_records)
      : source_(source),
        bad_records_(bad_records),
        scratch_(static_cast<size_t>(source.scratch_bytes()), 0) {
    for (const Field& field : source.fields())
      Add(fmt::format("{} {}\n", field.name, TypeToString(field.type)));
  }

  Result<uint32_t> Run() {
    const int64_t every =
        std::max<int64_t>(1, CeilDiv(SampleBytes(source_) * source_.size(), kMostBytes));
    for (int64_t sample = 0; sample < source_.size(); sample += every) {
      for (size_t field = 0; field < source_.fields().size(); ++field)
        RIDGE_RETURN_IF_ERROR(AddField(sample, static_cast<int>(field)));
    }
    return crc_;
  }

 private:
  void Add(std::string_view bytes) { crc_ = Crc32c(bytes, crc_); }

  Status AddField(int64_t sample, int field) {
    const auto bytes =
        static_cast<size_t>(source_.fields()[static_cast<size_t>(field)].type.bytes());
    const void* data = source_.View(sample, field);
    if (data == nullptr) {
      buffer_.resize(bytes);
      const Status read = source_.Read({sample}, field, scratch_, buffer_.data());
      const bool skips = bad_records_ != nullptr && bad_records_->skips();
      if (!read.ok() && skips && IsBadRecord(read)) {
        Add("bad record");
        return bad_records_->Add(source_.OriginAt({sample}), read.message());
      }
      RIDGE_RETURN_IF_ERROR(read);
      data = buffer_.data();
    }
    Add({static_cast<const char*>(data), bytes});
    return Status();
  }

  const Source& source_;
  BadRecords* bad_records_;  // or null
  uint32_t crc_ = 0;
  std::string buffer_;
  std::string scratch_;
};

}  // namespace

Result<DataDigest> DigestData(const SourcePtr& train, const SourcePtr& validation,
                              const SourcePtr& test, const BadRecordsPtr& bad_records) {
  DataDigest digest;
  const std::pair<const char*, const SourcePtr&> parts[] = {
      {"training", train}, {"validation", validation}, {"test", test}};
  for (const auto& [part, source] : parts) {
    if (source == nullptr) continue;
    RIDGE_ASSIGN_OR_RETURN(const uint32_t crc, Digester(*source, bad_records.get()).Run());
    digest.push_back({part, source->size(), crc});
  }
  return digest;
}

std::string DataDifference(const std::string& name, const DataDigest& now, const DataDigest& then) {
  for (const SourceDigest& used : then) {
    const auto found = std::find_if(now.begin(), now.end(), [&](const SourceDigest& source) {
      return source.part == used.part;
    });
    const int64_t samples = found == now.end() ? 0 : found->samples;
    if (samples != used.samples) {
      return fmt::format("{}, which has {} {} samples; the run has used {}", name, samples,
                         used.part, used.samples);
    }
    if (found->crc32c != used.crc32c) {
      return fmt::format("{}, whose {} samples are others than the run has used", name, used.part);
    }
  }
  return "";
}

}  // namespace ridge
