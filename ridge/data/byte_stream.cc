#include "ridge/data/byte_stream.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ridge {
namespace {

constexpr int64_t kInputBytes = 1 << 16;
constexpr int64_t kLargestCall = 1 << 30;  // zlib counts in 32 bits
// Deflate makes at most 1032 bytes of one (zlib's "technical details" page).
constexpr int64_t kMostInflation = 1032;
constexpr int kGzipWindow = 15 + 16;  // zlib: 16 asks for a gzip header
constexpr int kRawWindow = -15;       // zlib: negative is deflate without a header

Status BadData(const std::string& name, const std::string& what) {
  return Status(ErrorCode::kInvalidData, name + ": " + what);
}

Result<int64_t> RegularFileBytes(std::FILE* file, const std::string& name) {
  struct stat info {};
  if (::fstat(::fileno(file), &info) != 0)
    return BadData(name, fmt::format("cannot stat: {}", std::strerror(errno)));
  if (S_ISDIR(info.st_mode)) return BadData(name, "is a folder, not a file");
  if (!S_ISREG(info.st_mode)) return BadData(name, "is not a regular file");
  return static_cast<int64_t>(info.st_size);
}

Status CannotOpen(const std::string& name) {
  return BadData(name, fmt::format("cannot open: {}", std::strerror(errno)));
}

}  // namespace

ByteStream::ByteStream(std::string name, std::FILE* file, int64_t stored_bytes)
    : name_(std::move(name)),
      file_(file),
      stored_bytes_(stored_bytes),
      unread_bytes_(stored_bytes) {
  std::setvbuf(file, nullptr, _IONBF, 0);  // we read in large pieces
}

ByteStream::~ByteStream() {
  if (form_ != Form::kPlain) inflateEnd(&inflater_);
}

Result<std::unique_ptr<ByteStream>> ByteStream::Open(const std::string& path) {
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rbe"));
  if (!file) return CannotOpen(path);
  RIDGE_ASSIGN_OR_RETURN(const int64_t bytes, RegularFileBytes(file.get(), path));
  uint8_t magic[2] = {0, 0};
  const bool is_gzip =
      std::fread(magic, 1, 2, file.get()) == 2 && magic[0] == 0x1F && magic[1] == 0x8B;
  std::rewind(file.get());
  std::unique_ptr<ByteStream> stream(new ByteStream(path, file.release(), bytes));
  if (is_gzip) RIDGE_RETURN_IF_ERROR(stream->StartInflate(Form::kGzip));
  return stream;
}

Result<std::unique_ptr<ByteStream>> ByteStream::OpenPart(const FilePart& part) {
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(part.path.c_str(), "rbe"));
  if (!file) return CannotOpen(part.path);
  RIDGE_ASSIGN_OR_RETURN(const int64_t bytes, RegularFileBytes(file.get(), part.path));
  if (part.offset < 0 || part.stored_bytes < 0 || part.stored_bytes > bytes - part.offset) {
    return BadData(part.name,
                   fmt::format("should be {} bytes at offset {}, but the file has {} bytes",
                               part.stored_bytes, part.offset, bytes));
  }
  if (::fseeko(file.get(), part.offset, SEEK_SET) != 0) return CannotOpen(part.path);
  std::unique_ptr<ByteStream> stream(new ByteStream(part.name, file.release(), part.stored_bytes));
  stream->check_crc32_ = true;
  stream->expected_crc32_ = part.crc32;
  if (part.deflated) RIDGE_RETURN_IF_ERROR(stream->StartInflate(Form::kDeflate));
  return stream;
}

Status ByteStream::StartInflate(Form form) {
  if (inflateInit2(&inflater_, form == Form::kGzip ? kGzipWindow : kRawWindow) != Z_OK)
    return Status(ErrorCode::kOutOfMemory, name_ + ": no memory for zlib");
  form_ = form;
  input_.resize(kInputBytes);
  return Status();
}

int64_t ByteStream::bound_bytes() const {
  if (form_ == Form::kPlain) return stored_bytes_;
  return stored_bytes_ > INT64_MAX / kMostInflation ? INT64_MAX : stored_bytes_ * kMostInflation;
}

Result<int64_t> ByteStream::Read(void* to, int64_t bytes) {
  auto* bytes_to = static_cast<uint8_t*>(to);
  Result<int64_t> got =
      form_ == Form::kPlain ? ReadStored(to, bytes) : ReadInflated(bytes_to, bytes);
  if (!got.ok() || !check_crc32_) return got;
  crc32_ = static_cast<uint32_t>(crc32_z(crc32_, bytes_to, static_cast<size_t>(*got)));
  return got;
}

Status ByteStream::ExpectEnd() {
  uint8_t extra = 0;
  RIDGE_ASSIGN_OR_RETURN(const int64_t more, Read(&extra, 1));
  if (more != 0) {
    return BadData(name_,
                   fmt::format("holds more than the {} bytes it should", produced_bytes_ - more));
  }
  if (!check_crc32_ || crc32_ == expected_crc32_) return Status();
  return BadData(name_, fmt::format("is damaged: its checksum is {:08x}, should be {:08x}", crc32_,
                                    expected_crc32_));
}

Result<int64_t> ByteStream::ReadStored(void* to, int64_t bytes) {
  const auto wanted = static_cast<size_t>(std::min(bytes, unread_bytes_));
  const size_t got = std::fread(to, 1, wanted, file_.get());
  if (std::ferror(file_.get())) return CannotRead(static_cast<int64_t>(got));
  unread_bytes_ -= static_cast<int64_t>(got);
  produced_bytes_ += static_cast<int64_t>(got);
  return static_cast<int64_t>(got);
}

Result<int64_t> ByteStream::ReadInflated(uint8_t* to, int64_t bytes) {
  int64_t done = 0;
  while (done < bytes && !ended_) {
    const int64_t call = std::min(bytes - done, kLargestCall);
    inflater_.next_out = to + done;
    inflater_.avail_out = static_cast<uInt>(call);
    RIDGE_RETURN_IF_ERROR(InflateSome());
    const int64_t made = call - inflater_.avail_out;
    done += made;
    produced_bytes_ += made;
  }
  return done;
}

// One call of inflate, with input.
Status ByteStream::InflateSome() {
  if (inflater_.avail_in == 0) RIDGE_RETURN_IF_ERROR(Refill());
  if (inflater_.avail_in == 0) {
    return BadData(name_, fmt::format("is cut off: its compressed data ends after {} bytes without "
                                      "an end mark",
                                      stored_bytes_));
  }
  const int code = inflate(&inflater_, Z_NO_FLUSH);
  if (code == Z_STREAM_END) return FinishMember();
  if (code == Z_MEM_ERROR) return Status(ErrorCode::kOutOfMemory, name_ + ": no memory for zlib");
  return code == Z_OK || code == Z_BUF_ERROR ? Status() : Damaged();
}

// A gzip file may hold several members, one after the other.
Status ByteStream::FinishMember() {
  if (inflater_.avail_in == 0) RIDGE_RETURN_IF_ERROR(Refill());
  ended_ = form_ == Form::kDeflate || inflater_.avail_in == 0;
  if (!ended_ && inflateReset(&inflater_) != Z_OK) return Damaged();
  return Status();
}

Status ByteStream::Refill() {
  const auto wanted = static_cast<size_t>(std::min(kInputBytes, unread_bytes_));
  const size_t got = std::fread(input_.data(), 1, wanted, file_.get());
  if (std::ferror(file_.get())) return CannotRead(static_cast<int64_t>(got));
  unread_bytes_ -= static_cast<int64_t>(got);
  inflater_.next_in = input_.data();
  inflater_.avail_in = static_cast<uInt>(got);
  return Status();
}

// `got`: bytes of the read that came.
Status ByteStream::CannotRead(int64_t got) const {
  return BadData(
      name_, fmt::format("cannot be read at byte {} of {}: {}", stored_bytes_ - unread_bytes_ + got,
                         stored_bytes_, std::strerror(errno)));
}

Status ByteStream::Damaged() const {
  const int64_t at = stored_bytes_ - unread_bytes_ - inflater_.avail_in;
  return BadData(name_, fmt::format("its compressed data is damaged near byte {} of {}: {}", at,
                                    stored_bytes_, inflater_.msg ? inflater_.msg : "unknown"));
}

}  // namespace ridge
