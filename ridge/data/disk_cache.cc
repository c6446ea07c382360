#include "ridge/data/disk_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>

#include "ridge/core/crc32c.h"
#include "ridge/core/files.h"
#include "ridge/core/owned_fd.h"
#include "ridge/core/sha256.h"
#include "ridge/core/units.h"
#include "ridge/data/encoded_samples.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kHeaderBytes = 64;
constexpr char kMagic[] = "ridgesc1";
constexpr size_t kMagicBytes = 8;
constexpr char kSuffix[] = ".samples";
constexpr char kWritten[] = ".tmp-";  // and the number of the process

struct Check {
  uint32_t crc = 0;
  uint32_t present = 0;
};

Status DiskFailure(const std::string& path, const char* what, int error) {
  return Status(ErrorCode::kUnavailable,
                fmt::format("{}: {}: {}", path, what, std::strerror(error)));
}

// ---- the file's form

struct Form {
  int64_t samples = 0;
  std::vector<int64_t> begins;  // of the fields in a sample, and its end

  explicit Form(const Source& source) : samples(source.size()), begins{0} {
    for (const Field& field : source.fields()) begins.push_back(begins.back() + field.type.bytes());
  }
  int64_t fields() const { return static_cast<int64_t>(begins.size()) - 1; }
  int64_t checks() const { return samples * fields(); }
  int64_t check_bytes() const { return checks() * static_cast<int64_t>(sizeof(Check)); }
  int64_t field_bytes(int field) const {
    const auto i = static_cast<size_t>(field);
    return begins[i + 1] - begins[i];
  }
  int64_t OffsetOf(int64_t sample, int field) const {
    return kHeaderBytes + check_bytes() + sample * begins.back() +
           begins[static_cast<size_t>(field)];
  }
  int64_t file_bytes() const { return OffsetOf(samples, 0); }
};

std::string HeaderOf(const Form& form, const std::vector<Check>& checks) {
  std::string header(kMagic, kMagicBytes);
  const auto add = [&](const auto& value) {
    header.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  add(form.samples);
  add(form.begins.back());
  add(Crc32c(
      {reinterpret_cast<const char*>(checks.data()), static_cast<size_t>(form.check_bytes())}));
  add(Crc32c(header));
  header.resize(kHeaderBytes, '\0');
  return header;
}

bool ReadAt(int fd, int64_t offset, char* to, int64_t bytes) {
  while (bytes > 0) {
    const ssize_t got = ::pread(fd, to, static_cast<size_t>(bytes), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    offset += got;
    bytes -= got;
  }
  return true;
}

Status WriteAt(const std::string& path, int fd, int64_t offset, const char* from, int64_t bytes) {
  while (bytes > 0) {
    const ssize_t got = ::pwrite(fd, from, static_cast<size_t>(bytes), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return DiskFailure(path, "cannot be written", got == 0 ? ENOSPC : errno);
    from += got;
    offset += got;
    bytes -= got;
  }
  return Status();
}

// ---- all samples, by several threads

using OfSample = std::function<Status(int64_t sample, std::vector<char>& buffer)>;

Status ForEachSample(int64_t samples, int threads, const OfSample& run) {
  std::atomic<int64_t> next = 0;
  std::mutex mutex;
  Status failure;
  const auto work = [&] {
    std::vector<char> buffer;
    constexpr int64_t kPiece = 16;  // neighbours, so that files are read in order
    for (int64_t begin = next.fetch_add(kPiece); begin < samples; begin = next.fetch_add(kPiece)) {
      for (int64_t i = begin; i < std::min(samples, begin + kPiece); ++i) {
        const Status status = run(i, buffer);
        if (status.ok()) continue;
        const std::lock_guard lock(mutex);
        if (failure.ok()) failure = status;
        next = samples;
      }
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  return failure;
}

// Of all that the samples depend on, in their order.
Result<std::string> KeyOf(const Source& source, const DiskCacheOptions& options) {
  const auto* encoded = dynamic_cast<const EncodedSamples*>(&source);
  const Status unsupported(
      ErrorCode::kUnsupported,
      source.name() + ": its samples do not lie encoded in files, so none are cached");
  if (encoded == nullptr) return unsupported;
  std::vector<uint64_t> hashes(static_cast<size_t>(source.size()), 0);
  RIDGE_RETURN_IF_ERROR(
      ForEachSample(source.size(), options.threads, [&](int64_t sample, std::vector<char>& buffer) {
        ContentHash hash;
        const Status added = encoded->AddContent(sample, buffer, hash);
        if (added.code() == ErrorCode::kUnsupported) return unsupported;
        // What cannot be read now cannot be decoded either.
        hash.Add(added.ok() ? "read" : "bad");
        hashes[static_cast<size_t>(sample)] = hash.value();
        return Status();
      }));
  Sha256 key;
  key.Add(fmt::format("{}\n{}\n", kMagic, options.decoding));
  for (const Field& field : source.fields())
    key.Add(fmt::format("{} {}\n", field.name, TypeToString(field.type)));
  key.Add(hashes.data(), static_cast<int64_t>(hashes.size() * sizeof(uint64_t)));
  return key.Hex();
}

// ---- reading

class DiskCacheSource : public Source {
 public:
  DiskCacheSource(SourcePtr source, std::string path, OwnedFd fd, std::vector<Check> checks,
                  std::vector<SourcePtr> counted)
      : Source(source->name(), source->fields(), source->size()),
        source_(std::move(source)),
        form_(*source_),
        path_(std::move(path)),
        fd_(std::move(fd)),
        checks_(std::move(checks)),
        counted_(std::move(counted)) {}

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override {
    const Check& check = checks_[static_cast<size_t>(at.index * form_.fields() + field)];
    if (at.crop != nullptr || check.present == 0) return source_->Read(at, field, scratch, out);
    {
      const StageTimer timer(at.stages, InputStage::kRead);
      if (ReadChecked(at.index, field, check, static_cast<char*>(out))) return Status();
    }
    // The next run finds none and writes it anew; this one decodes what is damaged.
    ::unlink(path_.c_str());
    return source_->Read(at, field, scratch, out);
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
    return ResidentBytes(sources) - ResidentBytes(counted_) + form_.check_bytes();
  }

 private:
  bool ReadChecked(int64_t sample, int field, const Check& check, char* to) const {
    const int64_t bytes = form_.field_bytes(field);
    return ReadAt(fd_.get(), form_.OffsetOf(sample, field), to, bytes) &&
           Crc32c({to, static_cast<size_t>(bytes)}) == check.crc;
  }

  const SourcePtr source_;
  const Form form_;
  const std::string path_;
  const OwnedFd fd_;
  const std::vector<Check> checks_;
  const std::vector<SourcePtr> counted_;
};

// The checks of a whole file; nullopt: it is none.
std::optional<std::vector<Check>> ReadChecks(int fd, const Form& form) {
  struct stat facts {};
  if (::fstat(fd, &facts) != 0 || facts.st_size != form.file_bytes()) return std::nullopt;
  std::string header(kHeaderBytes, '\0');
  std::vector<Check> checks(static_cast<size_t>(form.checks()));
  const bool read =
      ReadAt(fd, 0, header.data(), kHeaderBytes) &&
      ReadAt(fd, kHeaderBytes, reinterpret_cast<char*>(checks.data()), form.check_bytes());
  if (!read || header != HeaderOf(form, checks)) return std::nullopt;
  return checks;
}

// ---- listing

// Of a cache, or of one that a process that ended has left.
bool IsCacheName(const std::string& name) {
  constexpr size_t kKey = 64;
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (name.size() < kKey || !std::all_of(name.begin(), name.begin() + kKey, is_hex)) return false;
  const std::string rest = name.substr(kKey), written = std::string(kSuffix) + kWritten;
  if (rest == kSuffix) return true;
  if (!rest.starts_with(written)) return false;
  pid_t process = 0;
  const char* const end = rest.data() + rest.size();
  const auto [behind, error] = std::from_chars(rest.data() + written.size(), end, process);
  const bool number = error == std::errc() && behind == end && process > 0;
  return number && ::kill(process, 0) != 0 && errno == ESRCH;
}

// By its header; 0: it is not whole.
int64_t SamplesOf(const std::string& path) {
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  char header[kMagicBytes + sizeof(int64_t)];
  if (fd.get() < 0 || !ReadAt(fd.get(), 0, header, sizeof header)) return 0;
  int64_t samples = 0;
  std::memcpy(&samples, header + kMagicBytes, sizeof samples);
  return std::memcmp(header, kMagic, kMagicBytes) == 0 ? std::max<int64_t>(0, samples) : 0;
}

// ---- writing

Status CheckRoom(const std::string& folder, int64_t bytes) {
  std::error_code error;
  const fs::space_info room = fs::space(folder, error);
  if (error || room.available >= static_cast<uint64_t>(bytes)) return Status();
  return Status(
      ErrorCode::kUnavailable,
      fmt::format("{}: the cache needs {}, the disk has {} left. hint: set XDG_CACHE_HOME "
                  "to a larger disk, or leave --cache out",
                  folder, FormatBytes(bytes), FormatBytes(static_cast<int64_t>(room.available))));
}

Status DecodeInto(const Source& source, const Form& form, const std::string& path, int fd,
                  int threads, std::vector<Check>& checks) {
  return ForEachSample(form.samples, threads, [&](int64_t sample, std::vector<char>& buffer) {
    buffer.resize(static_cast<size_t>(source.scratch_bytes() + form.begins.back()));
    const std::span<char> scratch(buffer.data(), static_cast<size_t>(source.scratch_bytes()));
    for (int field = 0; field < form.fields(); ++field) {
      char* to = buffer.data() + scratch.size();
      if (!source.Read({sample}, field, scratch, to).ok()) continue;
      const int64_t bytes = form.field_bytes(field);
      RIDGE_RETURN_IF_ERROR(WriteAt(path, fd, form.OffsetOf(sample, field), to, bytes));
      checks[static_cast<size_t>(sample * form.fields() + field)] = {
          Crc32c({to, static_cast<size_t>(bytes)}), 1};
    }
    return Status();
  });
}

Status WriteWhole(const Source& source, const Form& form, const std::string& path, int threads) {
  const OwnedFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (fd.get() < 0) return DiskFailure(path, "cannot be made", errno);
  if (::ftruncate(fd.get(), form.file_bytes()) != 0)
    return DiskFailure(path, "cannot be written", errno);
  std::vector<Check> checks(static_cast<size_t>(form.checks()));
  RIDGE_RETURN_IF_ERROR(DecodeInto(source, form, path, fd.get(), threads, checks));
  RIDGE_RETURN_IF_ERROR(WriteAt(path, fd.get(), kHeaderBytes,
                                reinterpret_cast<const char*>(checks.data()), form.check_bytes()));
  RIDGE_RETURN_IF_ERROR(WriteAt(path, fd.get(), 0, HeaderOf(form, checks).data(), kHeaderBytes));
  return ::fsync(fd.get()) == 0 ? Status() : DiskFailure(path, "cannot be written", errno);
}

Status WriteCache(const Source& source, const Form& form, const DiskCacheOptions& options,
                  const std::string& path) {
  RIDGE_RETURN_IF_ERROR(MakeFolders(options.folder));
  RIDGE_RETURN_IF_ERROR(CheckRoom(options.folder, form.file_bytes()));
  const std::string written = fmt::format("{}{}{}", path, kWritten, ::getpid());
  const Status status = WriteWhole(source, form, written, options.threads);
  if (status.ok() && ::rename(written.c_str(), path.c_str()) == 0) return SyncPath(options.folder);
  const int error = errno;
  ::unlink(written.c_str());
  return status.ok() ? DiskFailure(path, "cannot be written", error) : status;
}

}  // namespace

Result<std::vector<DiskCacheFile>> ListDiskCaches(const std::string& folder) {
  std::vector<DiskCacheFile> files;
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error == std::errc::no_such_file_or_directory) return files;
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string path = entries->path().string();
    struct stat facts {};
    const bool plain = ::lstat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
    if (!plain || !IsCacheName(entries->path().filename().string())) continue;
    files.push_back({path, facts.st_size, SamplesOf(path), facts.st_mtime});
  }
  if (error) return DiskFailure(folder, "cannot be listed", error.value());
  std::sort(files.begin(), files.end(),
            [](const DiskCacheFile& a, const DiskCacheFile& b) { return a.path < b.path; });
  return files;
}

Status RemoveDiskCache(const DiskCacheFile& file) {
  if (::unlink(file.path.c_str()) == 0 || errno == ENOENT) return Status();
  return DiskFailure(file.path, "cannot be removed", errno);
}

Result<DiskCached> CacheOnDisk(const SourcePtr& source, const DiskCacheOptions& options,
                               const std::vector<SourcePtr>& counted) {
  RIDGE_ASSIGN_OR_RETURN(const std::string key, KeyOf(*source, options));
  const Form form(*source);
  DiskCached cached;
  cached.path = options.folder + "/" + key + kSuffix;
  cached.file_bytes = form.file_bytes();
  for (const bool written : {false, true}) {
    if (written) RIDGE_RETURN_IF_ERROR(WriteCache(*source, form, options, cached.path));
    OwnedFd fd(::open(cached.path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.get() < 0) continue;
    auto checks = ReadChecks(fd.get(), form);
    cached.was_there = !written && checks.has_value();
    if (!checks) {
      cached.was_damaged = true;
      continue;
    }
    cached.source = std::make_shared<DiskCacheSource>(source, cached.path, std::move(fd),
                                                      std::move(*checks), counted);
    return cached;
  }
  return Status(ErrorCode::kUnavailable, cached.path + ": was written, and cannot be read");
}

}  // namespace ridge
