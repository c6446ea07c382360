#include "ridge/data/container/tfrecord_file.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "ridge/core/crc32c.h"

namespace ridge {
namespace {

constexpr int64_t kMostRecordBytes = (int64_t{1} << 31) - 1;  // protobuf's own limit

Status Bad(const std::string& reason) { return Status(ErrorCode::kInvalidData, reason); }

template <typename T>
T Load(std::string_view bytes, size_t at) {
  static_assert(std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

// A record as a part of its file.
class WindowView final : public RecordView {
 public:
  WindowView(FileWindow& window, int64_t begin, int64_t bytes)
      : window_(window), begin_(begin), bytes_(bytes) {}
  int64_t size() const override { return bytes_; }
  Result<std::string_view> At(int64_t offset, int64_t bytes) override {
    return window_.At(begin_ + offset, bytes);
  }

 private:
  FileWindow& window_;
  int64_t begin_, bytes_;
};

// The record whose header is at `offset`; bare reasons.
Result<RecordInFile> ReadRecord(FileWindow& window, int64_t file, int64_t number, int64_t offset) {
  RIDGE_ASSIGN_OR_RETURN(const std::string_view header, window.At(offset, kRecordHeaderBytes));
  RIDGE_ASSIGN_OR_RETURN(const int64_t bytes, ReadRecordLength(header));
  const int64_t begin = offset + kRecordHeaderBytes, rest = window.size() - begin;
  if (bytes > rest - kRecordFooterBytes) {
    return Bad(fmt::format("has {} bytes and a checksum of {}, but the file ends after {}", bytes,
                           kRecordFooterBytes, rest));
  }
  RIDGE_ASSIGN_OR_RETURN(const std::string_view footer,
                         window.At(begin + bytes, kRecordFooterBytes));
  return RecordInFile{FilePlace(file, offset), number, bytes, Load<uint32_t>(footer, 0)};
}

Status NoTfRecord(const std::string& path, FileWindow& window, const std::string& reason) {
  std::string message = path + ": is no TFRecord file: record 0 at byte 0 " + reason;
  const auto start = window.At(0, 1);
  if (start.ok() && *start == "\x78") message += ". hint: zlib is not read; compress it with gzip";
  return Bad(message);
}

// False when `found` has had enough.
Result<bool> ForEachRecordOf(const FileTable& files, int64_t file, const RecordFunction& found) {
  const std::string& path = files.path(file);
  auto window = FileWindow::Open(files, file);
  if (!window.ok()) return Bad(path + ": " + window.status().message());
  int64_t offset = 0;
  for (int64_t number = 0; offset < files.bytes(file); ++number) {
    const auto record = ReadRecord(*window, file, number, offset);
    if (!record.ok() && number == 0) return NoTfRecord(path, *window, record.status().message());
    const auto where = [&] { return RecordPlace(path, number, offset); };
    if (!record.ok()) return Bad(where() + " " + record.status().message());
    WindowView view(*window, offset + kRecordHeaderBytes, record->bytes);
    const Result<bool> more = found(*record, view);
    if (!more.ok()) return Status(more.status().code(), where() + ": " + more.status().message());
    if (!*more) return false;
    offset += kRecordHeaderBytes + record->bytes + kRecordFooterBytes;
  }
  return true;
}

}  // namespace

Result<int64_t> ReadRecordLength(std::string_view header) {
  if (header.size() < kRecordHeaderBytes)
    return Bad(fmt::format("ends after {} of the {} bytes of its header", header.size(),
                           kRecordHeaderBytes));
  const auto length = Load<uint64_t>(header, 0);
  const auto stored = Load<uint32_t>(header, 8), found = MaskCrc32c(Crc32c(header.substr(0, 8)));
  if (stored != found) {
    return Bad(fmt::format("has a damaged length: its checksum is {:08x}, should be {:08x}", found,
                           stored));
  }
  if (length <= kMostRecordBytes) return static_cast<int64_t>(length);
  return Bad(fmt::format("has {} bytes, at most {} are read", length, kMostRecordBytes));
}

bool BeginsAsRecord(std::string_view start) {
  return start.size() >= kRecordHeaderBytes &&
         Load<uint32_t>(start, 8) == MaskCrc32c(Crc32c(start.substr(0, 8)));
}

Status CheckRecord(std::string_view record, uint32_t stored) {
  const uint32_t found = MaskCrc32c(Crc32c(record));
  if (found == stored) return Status();
  return Bad(fmt::format("is damaged: its checksum is {:08x}, should be {:08x}", found, stored));
}

std::string RecordPlace(const std::string& path, int64_t number, int64_t offset) {
  return fmt::format("{}: record {} at byte {}", path, number, offset);
}

Status ForEachRecord(const FileTable& files, const RecordFunction& found) {
  for (int64_t file = 0; file < files.size(); ++file) {
    const Result<bool> more = ForEachRecordOf(files, file, found);
    if (!more.ok()) return more.status();
    if (!*more) return Status();
  }
  return Status();
}

}  // namespace ridge
