// SoundBytes: a sound file's bytes, read at any place: a file on disk or a member of an archive.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "ridge/core/owned_fd.h"
#include "ridge/core/status.h"
#include "ridge/data/file_stamp.h"

namespace ridge {

class SoundBytes {
 public:
  virtual ~SoundBytes() = default;
  virtual int64_t size() const = 0;

  // As many bytes as there are from `offset` on, at most to.size().  Fails with kInvalidData; the
  // message is the bare reason.  REQUIRES: offset >= 0.
  virtual Result<int64_t> ReadAt(int64_t offset, std::span<char> to) const = 0;
};

class SoundInMemory : public SoundBytes {
 public:
  explicit SoundInMemory(std::span<const char> bytes) : bytes_(bytes) {}
  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  Result<int64_t> ReadAt(int64_t offset, std::span<char> to) const override;

 private:
  std::span<const char> bytes_;
};

class SoundFile : public SoundBytes {
 public:
  // Fails with kInvalidData unless it is a regular file; the message begins with the path.
  static Result<SoundFile> Open(const std::string& path);
  int64_t size() const override { return stamp_.bytes; }
  const FileStamp& stamp() const { return stamp_; }
  Result<int64_t> ReadAt(int64_t offset, std::span<char> to) const override;

 private:
  SoundFile(OwnedFd fd, const FileStamp& stamp) : fd_(std::move(fd)), stamp_(stamp) {}
  OwnedFd fd_;
  FileStamp stamp_;
};

}  // namespace ridge
