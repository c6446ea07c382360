// External data: files beside a model that hold its tensors' bytes.
//
// A model names such files by relative paths, and a model comes from anywhere.  OpenBeneath is the
// one way by which names from a model reach the file system, for reading and for writing: nothing
// outside the folder is opened, and no link is followed below it.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "ridge/core/tensor.h"

namespace ridge {

// A file descriptor that is closed with its owner.
class OwnedFd {
 public:
  explicit OwnedFd(int fd = -1) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  OwnedFd& operator=(OwnedFd&& other) noexcept;
  ~OwnedFd();
  int get() const { return fd_; }

 private:
  int fd_;
};

// Opens the regular file `name`, a relative path, below `folder` with the flags of open(2);
// O_CLOEXEC, O_NOFOLLOW and O_NONBLOCK are added.  O_CREAT makes files with `mode`, never folders.
// `folder` itself is the user's: links in it are followed.
// Fails with kInvalidModel: an absolute or empty name, one that leaves the folder (".." anywhere),
// one over a link, a missing file, and what is no regular file; kUnavailable when a file cannot be
// made for writing.
Result<OwnedFd> OpenBeneath(const std::string& folder, const std::string& name, int flags,
                            mode_t mode = 0644);

// The same, without openat2(2) on request, as on systems that lack it: for tests.
Result<OwnedFd> OpenBeneathWith(const std::string& folder, const std::string& name, int flags,
                                mode_t mode, bool openat2);

// Where a tensor's bytes are.
struct ExternalRange {
  std::string location;
  int64_t offset_bytes = 0;
  int64_t length_bytes = -1;  // -1: what the type needs
};

// The external files of one model, each mapped once, read-only.  Tensors alias the mapping and
// keep it alive: others must not shorten the file meanwhile.  Not thread-safe.
class ExternalFiles {
 public:
  // An empty folder refuses all external data.
  explicit ExternalFiles(std::string folder) : folder_(std::move(folder)) {}

  // `stored_bytes` bytes of the range, for a tensor called `where` in messages.  Fails with
  // kInvalidModel when the file does not hold them.
  Result<std::shared_ptr<const void>> Find(const ExternalRange& range, int64_t stored_bytes,
                                           const std::string& where);

  // A file may be referred to many times over: what is copied out of it (bytes not aligned for
  // their type, packed ones) is bounded by eight times its size.
  Status SpendCopy(const ExternalRange& range, int64_t bytes, const std::string& where);

 private:
  struct File {
    std::shared_ptr<const void> bytes;  // null for an empty file
    int64_t size_bytes = 0;
    int64_t copied_bytes = 0;
  };
  Result<File*> Open(const std::string& location, const std::string& where);

  std::string folder_;
  std::map<std::string, File> files_;
};

}  // namespace ridge
