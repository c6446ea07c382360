// The central directory at the archive's end is the truth; of the local header before each entry
// only its length is used (numpy writes no sizes there). Source: PKWARE APPNOTE.TXT 6.3.9,
// sections 4.3.7, 4.3.12, 4.3.14 to 4.3.16 and 4.5.3.
#include "ridge/data/zip.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace ridge {
namespace {

constexpr uint32_t kLocalHeader = 0x04034B50;
constexpr uint32_t kDirectoryHeader = 0x02014B50;
constexpr uint32_t kEnd = 0x06054B50;
constexpr uint32_t kZip64End = 0x06064B50;
constexpr uint32_t kZip64Locator = 0x07064B50;
constexpr int64_t kLocalHeaderBytes = 30;
constexpr int64_t kDirectoryHeaderBytes = 46;
constexpr int64_t kEndBytes = 22;
constexpr int64_t kZip64EndBytes = 56;
constexpr int64_t kZip64LocatorBytes = 20;
constexpr int64_t kLongestComment = 65535;
constexpr int64_t kIn64 = 0xFFFFFFFF;  // "the value is in the zip64 part"
constexpr uint16_t kDosDate = 0x21;    // 1980-01-01

Status BadZip(const std::string& path, const std::string& what) {
  return Status(ErrorCode::kInvalidData, path + ": " + what);
}

// Little-endian number of `bytes` bytes.  REQUIRES: it lies inside `data`.
int64_t NumberAt(std::string_view data, int64_t offset, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; --i)
    value = value << 8 | static_cast<uint8_t>(data[static_cast<size_t>(offset + i)]);
  return static_cast<int64_t>(value);
}

Result<std::string> ReadAt(const std::string& path, int64_t offset, int64_t bytes) {
  RIDGE_ASSIGN_OR_RETURN(const auto stream,
                         ByteStream::OpenPart({path, path + ": its zip directory", offset, bytes}));
  std::string data(static_cast<size_t>(bytes), '\0');
  RIDGE_ASSIGN_OR_RETURN(const int64_t got, stream->Read(data.data(), bytes));
  if (got != bytes) return BadZip(path, "became shorter while it was read");
  return data;
}

struct DirectoryPlace {
  int64_t offset = 0;
  int64_t bytes = 0;
};

Result<DirectoryPlace> ReadZip64End(const std::string& path, int64_t end_offset) {
  const Status damaged = BadZip(path, "its zip64 end record is damaged");
  if (end_offset < kZip64LocatorBytes) return damaged;
  RIDGE_ASSIGN_OR_RETURN(const std::string locator,
                         ReadAt(path, end_offset - kZip64LocatorBytes, kZip64LocatorBytes));
  if (NumberAt(locator, 0, 4) != kZip64Locator) return damaged;
  RIDGE_ASSIGN_OR_RETURN(const std::string end,
                         ReadAt(path, NumberAt(locator, 8, 8), kZip64EndBytes));
  if (NumberAt(end, 0, 4) != kZip64End) return damaged;
  return DirectoryPlace{NumberAt(end, 48, 8), NumberAt(end, 40, 8)};
}

Result<DirectoryPlace> FindDirectory(const std::string& path) {
  std::error_code error;
  const auto file_bytes = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (error) return BadZip(path, "cannot open: " + error.message());
  const int64_t tail_bytes = std::min(file_bytes, kEndBytes + kLongestComment);
  RIDGE_ASSIGN_OR_RETURN(const std::string tail, ReadAt(path, file_bytes - tail_bytes, tail_bytes));
  for (int64_t at = tail_bytes - kEndBytes; at >= 0; --at) {
    if (NumberAt(tail, at, 4) != kEnd) continue;
    const DirectoryPlace place{NumberAt(tail, at + 16, 4), NumberAt(tail, at + 12, 4)};
    const bool in64 = place.offset == kIn64 || place.bytes == kIn64;
    return in64 ? ReadZip64End(path, file_bytes - tail_bytes + at) : place;
  }
  return BadZip(path, fmt::format("is not a zip archive, or is cut off: there is no end record in "
                                  "its last {} bytes",
                                  tail_bytes));
}

// Sizes and offset over 4 GiB are in extra field 1, those that are needed, in this order.
void ReadZip64Extra(std::string_view extra, ZipEntry& entry) {
  for (int64_t at = 0; at + 4 <= static_cast<int64_t>(extra.size());) {
    const int64_t end = at + 4 + NumberAt(extra, at + 2, 2);
    const bool fits = end <= static_cast<int64_t>(extra.size());
    int64_t from = at + 4;
    if (fits && NumberAt(extra, at, 2) == 1) {
      for (int64_t* value : {&entry.bytes, &entry.stored_bytes, &entry.header_offset}) {
        if (*value != kIn64 || from + 8 > end) continue;
        *value = NumberAt(extra, from, 8);
        from += 8;
      }
    }
    at = end;
  }
}

Status CheckEntry(const std::string& path, const ZipEntry& entry, int64_t flags, int64_t method) {
  const std::string where = fmt::format("{}('{}')", path, entry.name);
  if (flags & 1) return BadZip(where, "is encrypted; only plain archives can be read");
  if (method != 0 && method != 8) {
    return BadZip(
        where, fmt::format("uses zip compression {}, should be 0 (stored) or 8 (deflate)", method));
  }
  const bool possible =
      entry.bytes >= 0 && entry.stored_bytes >= 0 &&
      (method == 8 ? entry.bytes / 1032 <= entry.stored_bytes : entry.bytes == entry.stored_bytes);
  if (possible) return Status();
  return BadZip(where, fmt::format("declares {} bytes, its {} stored bytes cannot hold that",
                                   entry.bytes, entry.stored_bytes));
}

// The entry at `at`, which then points behind it.
Result<ZipEntry> ReadEntry(const std::string& path, std::string_view directory, int64_t& at) {
  const auto size = static_cast<int64_t>(directory.size());
  const Status damaged = BadZip(path, fmt::format("its zip directory is damaged at byte {}", at));
  if (at + kDirectoryHeaderBytes > size || NumberAt(directory, at, 4) != kDirectoryHeader)
    return damaged;
  const int64_t name_bytes = NumberAt(directory, at + 28, 2);
  const int64_t extra_bytes = NumberAt(directory, at + 30, 2);
  const int64_t next =
      at + kDirectoryHeaderBytes + name_bytes + extra_bytes + NumberAt(directory, at + 32, 2);
  if (next > size) return damaged;
  const auto name_at = static_cast<size_t>(at + kDirectoryHeaderBytes);
  ZipEntry entry;
  entry.name = directory.substr(name_at, static_cast<size_t>(name_bytes));
  const int64_t method = NumberAt(directory, at + 10, 2);
  entry.deflated = method == 8;
  entry.crc32 = static_cast<uint32_t>(NumberAt(directory, at + 16, 4));
  entry.stored_bytes = NumberAt(directory, at + 20, 4);
  entry.bytes = NumberAt(directory, at + 24, 4);
  entry.header_offset = NumberAt(directory, at + 42, 4);
  ReadZip64Extra(directory.substr(name_at + entry.name.size(), static_cast<size_t>(extra_bytes)),
                 entry);
  RIDGE_RETURN_IF_ERROR(CheckEntry(path, entry, NumberAt(directory, at + 8, 2), method));
  at = next;
  return entry;
}

void Append(std::string& to, int64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to.push_back(static_cast<char>(value >> (8 * i)));
}

// The fields that the local header and the directory's header share.
void AppendCommon(std::string& to, const ZipEntry& entry) {
  Append(to, 20, 2);  // version 2.0 is needed to read it
  Append(to, 0, 2);   // flags
  Append(to, 0, 2);   // stored
  Append(to, 0, 2);   // time
  Append(to, kDosDate, 2);
  Append(to, entry.crc32, 4);
  Append(to, entry.bytes, 4);
  Append(to, entry.bytes, 4);
  Append(to, static_cast<int64_t>(entry.name.size()), 2);
  Append(to, 0, 2);  // no extra fields
}

void AppendDirectoryHeader(std::string& to, const ZipEntry& entry) {
  Append(to, kDirectoryHeader, 4);
  Append(to, 20, 2);  // made by version 2.0
  AppendCommon(to, entry);
  Append(to, 0, 2);  // no comment
  Append(to, 0, 2);  // disk
  Append(to, 0, 2);  // internal attributes
  Append(to, int64_t{0644} << 16, 4);
  Append(to, entry.header_offset, 4);
  to += entry.name;
}

void AppendEnd(std::string& to, int64_t entries, int64_t directory_offset) {
  const auto directory_bytes = static_cast<int64_t>(to.size()) - directory_offset;
  Append(to, kEnd, 4);
  Append(to, 0, 4);  // disks
  Append(to, entries, 2);
  Append(to, entries, 2);
  Append(to, directory_bytes, 4);
  Append(to, directory_offset, 4);
  Append(to, 0, 2);  // no comment
}

ZipEntry Describe(const ZipContent& content, int64_t offset) {
  ZipEntry entry;
  entry.name = content.name;
  entry.header_offset = offset;
  for (std::string_view piece : content.pieces) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(piece.data());
    entry.crc32 = static_cast<uint32_t>(crc32_z(entry.crc32, bytes, piece.size()));
    entry.bytes += static_cast<int64_t>(piece.size());
  }
  return entry;
}

// An upper bound of the archive's size.
int64_t ArchiveBytes(const std::vector<ZipContent>& entries) {
  int64_t bytes = kEndBytes;
  for (const ZipContent& entry : entries) {
    bytes +=
        kLocalHeaderBytes + kDirectoryHeaderBytes + 2 * static_cast<int64_t>(entry.name.size());
    for (std::string_view piece : entry.pieces) bytes += static_cast<int64_t>(piece.size());
  }
  return bytes;
}

}  // namespace

Result<std::vector<ZipEntry>> ReadZipDirectory(const std::string& path) {
  RIDGE_ASSIGN_OR_RETURN(const DirectoryPlace place, FindDirectory(path));
  RIDGE_ASSIGN_OR_RETURN(const std::string directory, ReadAt(path, place.offset, place.bytes));
  std::vector<ZipEntry> entries;
  for (int64_t at = 0; at < static_cast<int64_t>(directory.size());) {
    RIDGE_ASSIGN_OR_RETURN(ZipEntry entry, ReadEntry(path, directory, at));
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<std::unique_ptr<ByteStream>> OpenZipEntry(const std::string& path, const ZipEntry& entry) {
  RIDGE_ASSIGN_OR_RETURN(const std::string header,
                         ReadAt(path, entry.header_offset, kLocalHeaderBytes));
  const std::string where = fmt::format("{}('{}')", path, entry.name);
  if (NumberAt(header, 0, 4) != kLocalHeader)
    return BadZip(where, fmt::format("is not at byte {}, where the zip directory says it is",
                                     entry.header_offset));
  const int64_t content_offset =
      entry.header_offset + kLocalHeaderBytes + NumberAt(header, 26, 2) + NumberAt(header, 28, 2);
  return ByteStream::OpenPart(
      {path, where, content_offset, entry.stored_bytes, entry.deflated, entry.crc32});
}

Result<std::string> MakeZip(const std::vector<ZipContent>& entries) {
  const int64_t bound = ArchiveBytes(entries);
  if (bound >= kIn64 || entries.size() >= 0xFFFF) {
    return Status(ErrorCode::kUnsupported,
                  fmt::format("zip archive: {} entries of {} bytes together; it must stay below "
                              "65535 entries and 4 GiB",
                              entries.size(), bound));
  }
  std::string archive;
  archive.reserve(static_cast<size_t>(bound));
  std::vector<ZipEntry> directory;
  for (const ZipContent& content : entries) {
    directory.push_back(Describe(content, static_cast<int64_t>(archive.size())));
    Append(archive, kLocalHeader, 4);
    AppendCommon(archive, directory.back());
    archive += content.name;
    for (std::string_view piece : content.pieces) archive += piece;
  }
  const auto directory_offset = static_cast<int64_t>(archive.size());
  for (const ZipEntry& entry : directory) AppendDirectoryHeader(archive, entry);
  AppendEnd(archive, static_cast<int64_t>(directory.size()), directory_offset);
  return archive;
}

}  // namespace ridge
