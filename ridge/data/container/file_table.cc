#include "ridge/data/container/file_table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ridge/data/byte_stream.h"
#include "ridge/data/memory_source.h"

namespace ridge {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << FilePlace::kOffsetBits;
constexpr int64_t kAhead = 256 << 10;  // what a pass reads at once
constexpr int64_t kNear = 64 << 10;    // a gap that is read over
constexpr int64_t kFar = 4 << 10;      // what a look at a distant place reads

Status Bad(const std::string& reason) { return Status(ErrorCode::kInvalidData, reason); }

Status BadData(const std::string& path, const std::string& what) { return Bad(path + ": " + what); }

struct Opened {
  OwnedFd fd;
  struct stat info {};
};

// As all that follows: a failure is a bare reason.
Result<Opened> OpenRegular(const std::string& path) {
  Opened opened;  // O_NONBLOCK: a pipe must not block
  opened.fd = OwnedFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (opened.fd.get() < 0 || ::fstat(opened.fd.get(), &opened.info) != 0)
    return Bad(std::string("cannot be opened: ") + std::strerror(errno));
  if (!S_ISREG(opened.info.st_mode)) return Bad("is no regular file");
  return opened;
}

// Up to to.size() bytes; fewer at the end.
Result<int64_t> ReadUpTo(int fd, int64_t offset, std::span<char> to) {
  size_t done = 0;
  while (done < to.size()) {
    const ssize_t got =
        ::pread(fd, to.data() + done, to.size() - done, offset + static_cast<int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return Bad(fmt::format("cannot be read at byte {}: {}", offset + static_cast<int64_t>(done),
                             std::strerror(errno)));
    }
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return static_cast<int64_t>(done);
}

bool BeginsAsGzip(std::string_view start) { return start.starts_with("\x1F\x8B\x08"); }

Result<int64_t> CountBytes(const std::string& path) {
  RIDGE_ASSIGN_OR_RETURN(const auto stream, ByteStream::Open(path));
  std::vector<char> buffer(size_t{64} << 10);
  for (int64_t bytes = 0;;) {
    RIDGE_ASSIGN_OR_RETURN(const int64_t got,
                           stream->Read(buffer.data(), static_cast<int64_t>(buffer.size())));
    bytes += got;
    if (got == static_cast<int64_t>(buffer.size())) continue;
    RIDGE_RETURN_IF_ERROR(stream->ExpectEnd());
    return bytes;
  }
}

}  // namespace

Status FileTable::Reader::Read(int64_t offset, std::span<char> to) const {
  if (fd_.get() < 0) {
    std::memcpy(to.data(), content_.data() + offset, to.size());
    return Status();
  }
  RIDGE_ASSIGN_OR_RETURN(const int64_t got, ReadUpTo(fd_.get(), offset, to));
  if (got == static_cast<int64_t>(to.size())) return Status();
  return Bad("became shorter while it was read");
}

Status FileTable::Inflate(File& file) {
  RIDGE_ASSIGN_OR_RETURN(file.bytes, CountBytes(file.path));
  RIDGE_ASSIGN_OR_RETURN(file.content, MakeTensor(file.path, {DType::kU8, {file.bytes}}));
  RIDGE_ASSIGN_OR_RETURN(const auto stream, ByteStream::Open(file.path));
  RIDGE_ASSIGN_OR_RETURN(const int64_t got, stream->Read(file.content.mutable_data(), file.bytes));
  if (got == file.bytes) return stream->ExpectEnd();
  return BadData(file.path, "became shorter while it was read");
}

Status FileTable::OpenFirst(File& file, const std::function<bool(std::string_view)>& is_plain) {
  RIDGE_ASSIGN_OR_RETURN(const Opened opened, OpenRegular(file.path));
  file.bytes = opened.info.st_size;
  file.stamp = StampOf(opened.info);
  char start[16];
  RIDGE_ASSIGN_OR_RETURN(const int64_t got, ReadUpTo(opened.fd.get(), 0, start));
  const std::string_view begin(start, static_cast<size_t>(got));
  file.is_gzip = BeginsAsGzip(begin) && !is_plain(begin);
  return Status();
}

Result<FileTable> FileTable::Open(const std::vector<std::string>& paths,
                                  const std::function<bool(std::string_view)>& is_plain) {
  FileTable table;
  for (const std::string& path : paths) {
    File file;
    file.path = path;
    const Status opened = OpenFirst(file, is_plain);
    if (!opened.ok()) return Status(opened.code(), path + ": " + opened.message());
    if (file.is_gzip) RIDGE_RETURN_IF_ERROR(Inflate(file));
    if (file.bytes == 0) return BadData(path, "is empty");
    if (file.bytes >= kMostBytes) {
      return BadData(path,
                     fmt::format("has {} bytes, fewer than {} are read", file.bytes, kMostBytes));
    }
    table.files_.push_back(std::move(file));
  }
  return table;
}

std::string_view FileTable::content(int64_t file) const {
  const File& at = At(file);
  if (!at.is_gzip) return {};
  return {static_cast<const char*>(at.content.data()), static_cast<size_t>(at.bytes)};
}

Result<FileTable::Reader> FileTable::OpenFile(int64_t file) const {
  const File& at = At(file);
  Reader reader;
  reader.content_ = content(file);
  if (at.is_gzip) return reader;
  RIDGE_ASSIGN_OR_RETURN(Opened opened, OpenRegular(at.path));
  if (StampOf(opened.info) != at.stamp) return Bad("has changed since the data was opened");
  reader.fd_ = std::move(opened.fd);
  return reader;
}

int64_t FileTable::resident_bytes() const {
  int64_t bytes = static_cast<int64_t>(files_.capacity() * sizeof(File));
  for (const File& file : files_) {
    bytes += static_cast<int64_t>(file.path.capacity());
    if (file.is_gzip) bytes += file.bytes;
  }
  return bytes;
}

Result<FileWindow> FileWindow::Open(const FileTable& files, int64_t file) {
  FileWindow window;
  RIDGE_ASSIGN_OR_RETURN(window.reader_, files.OpenFile(file));
  window.content_ = files.content(file);
  window.size_ = files.bytes(file);
  return window;
}

Result<std::string_view> FileWindow::At(int64_t offset, int64_t bytes) {
  offset = std::min(offset, size_);
  bytes = std::min(bytes, size_ - offset);
  if (!content_.empty())
    return content_.substr(static_cast<size_t>(offset), static_cast<size_t>(bytes));
  if (offset < begin_ || offset + bytes > end_) {
    const bool near = offset >= begin_ && offset <= end_ + kNear;
    const int64_t wanted = std::min(std::max(bytes, near ? kAhead : kFar), size_ - offset);
    if (static_cast<int64_t>(buffer_.size()) < wanted) buffer_.resize(static_cast<size_t>(wanted));
    begin_ = end_ = 0;
    RIDGE_RETURN_IF_ERROR(
        reader_.Read(offset, std::span(buffer_).first(static_cast<size_t>(wanted))));
    begin_ = offset;
    end_ = offset + wanted;
  }
  return std::string_view(buffer_.data() + (offset - begin_), static_cast<size_t>(bytes));
}

}  // namespace ridge
