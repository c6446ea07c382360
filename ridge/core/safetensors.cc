#include "ridge/core/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include "ridge/core/crc32c.h"
#include "ridge/core/read_back.h"

namespace ridge {
namespace {

constexpr int64_t kLengthBytes = 8;
constexpr int64_t kPieceBytes = int64_t{1} << 20;

std::string EncodeLength(size_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(uint64_t{length} >> (8 * i)));
  return bytes;
}

uint64_t DecodeLength(const std::array<uint8_t, kLengthBytes>& bytes) {
  uint64_t length = 0;
  for (size_t i = bytes.size(); i-- > 0;) length = (length << 8) | bytes[i];
  return length;
}

Status Bad(const std::string& path, std::string_view message) {
  return Status(ErrorCode::kInvalidData, fmt::format("{}: {}", path, message));
}

Status SystemError(const std::string& path, const char* what) {
  return Bad(path, fmt::format("cannot {}: {}", what, std::strerror(errno)));
}

// Fills `to`, or fails: the file may have been shortened since its size was read.
Status ReadAt(int fd, const std::string& path, int64_t offset, void* to, int64_t bytes) {
  auto* next = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t count = ::pread(fd, next, static_cast<size_t>(bytes), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(path, "read");
    if (count == 0) return Bad(path, fmt::format("ends at byte {} while being read", offset));
    next += count;
    offset += count;
    bytes -= count;
  }
  return Status();
}

Status CheckRegular(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return SystemError(path, "stat");
  return S_ISREG(info.st_mode) ? Status() : Bad(path, "is not a regular file");
}

}  // namespace

Result<std::string> SafetensorsHead(std::span<const SafetensorsEntry> entries,
                                    const SafetensorsMetadata& metadata) {
  RIDGE_ASSIGN_OR_RETURN(const std::string header, PrintSafetensorsHeader(entries, metadata));
  return EncodeLength(header.size()) + header;
}

Result<SafetensorsWriter> SafetensorsWriter::Create(const std::string& path,
                                                    std::span<const SafetensorsEntry> entries,
                                                    const SafetensorsMetadata& metadata) {
  Result<std::string> head = SafetensorsHead(entries, metadata);
  if (!head.ok()) return Status(head.status().code(), path + ": " + head.status().message());
  RIDGE_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path, OutputFile::Mode::kReplace));
  SafetensorsWriter writer(std::move(file));
  RIDGE_RETURN_IF_ERROR(writer.Write(*head));
  for (const SafetensorsEntry& entry : entries) writer.missing_bytes_ += entry.type.bytes();
  return writer;
}

SafetensorsWriter::~SafetensorsWriter() {
  if (file_) ::unlink(file_->path().c_str());
}

Status SafetensorsWriter::Append(const void* data, int64_t bytes) {
  RIDGE_CHECK(bytes <= missing_bytes_, "no more bytes than the header announces");
  missing_bytes_ -= bytes;
  std::string_view rest(static_cast<const char*>(data), static_cast<size_t>(bytes));
  while (!rest.empty()) {  // a piece is still in the cache when its checksum is taken
    const std::string_view piece = rest.substr(0, kPieceBytes);
    RIDGE_RETURN_IF_ERROR(Write(piece));
    rest.remove_prefix(piece.size());
  }
  return Status();
}

Status SafetensorsWriter::Write(std::string_view bytes) {
  crc_ = Crc32c(bytes, crc_);
  return file_->Append(bytes);
}

Result<FileDigest> SafetensorsWriter::Finish() {
  RIDGE_CHECK(missing_bytes_ == 0, "every tensor's bytes were appended");
  RIDGE_RETURN_IF_ERROR(file_->Close());
  const FileDigest digest{file_->size_bytes(), crc_};
  file_.reset();
  return digest;
}

Result<FileDigest> WriteSafetensors(const std::string& path, std::span<const SafetensorsItem> items,
                                    const SafetensorsMetadata& metadata) {
  std::vector<SafetensorsEntry> entries;
  for (const SafetensorsItem& item : items) entries.push_back({item.name, item.type});
  RIDGE_ASSIGN_OR_RETURN(auto writer, SafetensorsWriter::Create(path, entries, metadata));
  for (const SafetensorsItem& item : items)
    RIDGE_RETURN_IF_ERROR(writer.Append(item.data, item.type.bytes()));
  return writer.Finish();
}

Result<FileDigest> ReadFileDigest(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return SystemError(path, "open");
  const std::shared_ptr<const void> closer(nullptr, [fd](const void*) { ::close(fd); });
  const BytesRead read = ReadBack(fd, 0, std::numeric_limits<int64_t>::max());
  errno = read.error;
  if (read.error != 0) return SystemError(path, "read");
  return FileDigest{read.count, read.crc32c};
}

Result<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  const auto state = std::make_shared<State>();
  state->path = path;
  OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe must not block
  if (fd.get() < 0) return SystemError(path, "open");
  RIDGE_RETURN_IF_ERROR(CheckRegular(fd.get(), path));
  RIDGE_ASSIGN_OR_RETURN(state->file,
                         TensorFile::Adopt(std::move(fd), path, ErrorCode::kInvalidData));
  RIDGE_RETURN_IF_ERROR(ReadHeader(*state));
  return SafetensorsFile(state);
}

Status SafetensorsFile::ReadHeader(State& state) {
  const int64_t size = state.file->size_bytes();
  if (size < kLengthBytes) {
    return Bad(state.path,
               fmt::format("has {} bytes; a safetensors file has at least {}", size, kLengthBytes));
  }
  std::array<uint8_t, kLengthBytes> prefix{};
  RIDGE_RETURN_IF_ERROR(ReadAt(state.fd(), state.path, 0, prefix.data(), kLengthBytes));
  const uint64_t length = DecodeLength(prefix);
  if (length > kMaxSafetensorsHeaderBytes) {
    return Bad(state.path, fmt::format("the header's length is {}; at most {} is allowed", length,
                                       kMaxSafetensorsHeaderBytes));
  }
  const auto header_bytes = static_cast<int64_t>(length);
  if (header_bytes > size - kLengthBytes) {
    return Bad(state.path, fmt::format("the header's length is {}; only {} bytes follow", length,
                                       size - kLengthBytes));
  }
  std::string text(length, '\0');
  RIDGE_RETURN_IF_ERROR(ReadAt(state.fd(), state.path, kLengthBytes, text.data(), header_bytes));
  state.buffer_start = kLengthBytes + header_bytes;
  auto header = ParseSafetensorsHeader(text, size - state.buffer_start);
  if (!header.ok()) {
    return Status(header.status().code(), state.path + ": " + header.status().message());
  }
  state.header = std::move(*header);
  return Status();
}

Status SafetensorsFile::ReadInto(const SafetensorsEntry& entry, int64_t begin, int64_t bytes,
                                 void* to) const {
  return ReadAt(state_->fd(), state_->path, state_->buffer_start + entry.offset_bytes + begin, to,
                bytes);
}

Result<Tensor> SafetensorsFile::Refer(const SafetensorsEntry& entry) const {
  if (entry.type.bytes() >= kStaysInFileFrom)
    return TensorInFile(entry.type, state_->file, state_->buffer_start + entry.offset_bytes);
  Tensor tensor(entry.type);
  RIDGE_RETURN_IF_ERROR(ReadInto(entry, tensor.mutable_data()));
  return tensor;
}

Result<Tensor> SafetensorsFile::Load(std::string_view name) const {
  const SafetensorsEntry* entry = Find(name);
  if (entry == nullptr) return Bad(state_->path, fmt::format("has no tensor '{}'", name));
  const int64_t start = state_->buffer_start + entry->offset_bytes;
  const bool aligned = start % BytesPerElement(entry->type.dtype) == 0;
  if (aligned && entry->type.bytes() > 0) return Map(*entry);
  Tensor tensor(entry->type);
  RIDGE_RETURN_IF_ERROR(ReadInto(*entry, tensor.mutable_data()));
  return tensor;
}

// Maps the pages that hold this tensor; the last copy of the tensor unmaps them.
Result<Tensor> SafetensorsFile::Map(const SafetensorsEntry& entry) const {
  const int64_t start = state_->buffer_start + entry.offset_bytes;
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  const int64_t skipped = start % page;
  const auto length = static_cast<size_t>(skipped + entry.type.bytes());
  void* at = ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE, state_->fd(), start - skipped);
  if (at == MAP_FAILED) return SystemError(state_->path, "map");
  std::shared_ptr<const void> owner(
      at, [length](const void* p) { ::munmap(const_cast<void*>(p), length); });
  return Tensor(entry.type, static_cast<const char*>(at) + skipped, std::move(owner));
}

}  // namespace ridge
