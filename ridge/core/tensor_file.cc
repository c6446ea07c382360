// Every read compares the file's size and the time of its last write with those at Adopt(), after
// the bytes have come: a write sets the time before it moves bytes.  No checksum: that would need
// all bytes at the import, which otherwise reads none.  Known weakness: a write within the tick of
// the system's clock (4 ms) in which the file was opened, and one through a mapping that is already
// dirty, leave size and time as they were.
#include "ridge/core/tensor_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace ridge {
namespace {

constexpr char kHint[] =
    ". hint: start again, and leave the file as it is until the first step has run";

class FileSource : public TensorSource {
 public:
  FileSource(DType dtype, std::shared_ptr<const TensorFile> file, int64_t offset)
      : element_bytes_(BytesPerElement(dtype)), file_(std::move(file)), offset_(offset) {}

  Status Read(int64_t begin, int64_t end, void* to) const override {
    return file_->Read(offset_ + begin * element_bytes_, (end - begin) * element_bytes_, to);
  }

 private:
  int64_t element_bytes_;
  std::shared_ptr<const TensorFile> file_;
  int64_t offset_;
};

class ConvertedSource : public TensorSource {
 public:
  ConvertedSource(Tensor from, DType to) : from_(std::move(from)), to_(to) {}

  Status Read(int64_t begin, int64_t end, void* to) const override {
    return ReadConverted(from_, to_, begin, end, to);
  }

 private:
  Tensor from_;
  DType to_;
};

bool SameTime(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

}  // namespace

Result<std::shared_ptr<const TensorFile>> TensorFile::Adopt(OwnedFd fd, std::string name,
                                                            ErrorCode code) {
  std::shared_ptr<TensorFile> file(new TensorFile(std::move(fd), std::move(name), code));
  struct stat facts = {};
  if (::fstat(file->fd(), &facts) != 0) return file->Bad(std::strerror(errno));
  file->size_bytes_ = facts.st_size;
  file->written_ = facts.st_mtim;
  return std::shared_ptr<const TensorFile>(std::move(file));
}

Status TensorFile::Bad(const std::string& text) const { return Status(code_, name_ + ": " + text); }

Status TensorFile::Read(int64_t offset, int64_t bytes, void* to) const {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::pread(fd_.get(), at, static_cast<size_t>(bytes), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Bad(fmt::format("can't be read: {}", std::strerror(errno)));
    if (got == 0) break;
    at += got;
    offset += got;
    bytes -= got;
  }
  RIDGE_RETURN_IF_ERROR(CheckUnchanged());
  return bytes == 0 ? Status() : Bad(fmt::format("can't be read: it ends at byte {}", offset));
}

Status TensorFile::CheckUnchanged() const {
  struct stat facts = {};
  if (::fstat(fd_.get(), &facts) != 0) return Bad(std::strerror(errno));
  if (facts.st_size != size_bytes_) {
    return Bad(fmt::format("has changed: it has {} bytes, and had {} when it was opened{}",
                           facts.st_size, size_bytes_, kHint));
  }
  if (SameTime(facts.st_mtim, written_)) return Status();
  return Bad(fmt::format("has changed: it was written to after it was opened{}", kHint));
}

Tensor TensorInFile(TensorType type, std::shared_ptr<const TensorFile> file, int64_t offset) {
  auto source = std::make_shared<FileSource>(type.dtype, std::move(file), offset);
  return Tensor(std::move(type), std::move(source));
}

Tensor Converted(const Tensor& from, DType to) {
  if (from.type().dtype == to) return from;
  const TensorType type{to, from.type().dims};
  if (!from.in_memory()) return Tensor(type, std::make_shared<ConvertedSource>(from, to));
  Tensor tensor(type);
  const Status status = ReadConverted(from, to, 0, from.elements(), tensor.mutable_data());
  RIDGE_CHECK(status.ok(), status.message());
  return tensor;
}

Status ReadConverted(const Tensor& from, DType to_type, int64_t begin, int64_t end, void* to) {
  const DType from_type = from.type().dtype;
  if (from_type == to_type) return from.Read(begin, end, to);
  constexpr int64_t kPiece = 1024;
  alignas(16) std::array<std::byte, kPiece * sizeof(double)> stored;
  std::array<double, kPiece> numbers;
  auto* out = static_cast<std::byte*>(to);
  for (int64_t at = begin; at < end; at += kPiece) {
    const int64_t count = std::min(kPiece, end - at);
    RIDGE_RETURN_IF_ERROR(from.Read(at, at + count, stored.data()));
    ConvertToDouble(from_type, stored.data(), numbers.data(), count);
    ConvertFromDouble(to_type, numbers.data(), out, count);
    out += count * BytesPerElement(to_type);
  }
  return Status();
}

}  // namespace ridge
