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

#include "ridge/core/owned_fd.h"
#include "ridge/core/tensor_file.h"

namespace ridge {

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

// A range of an open file, compared with its size.
struct ExternalPlace {
  std::shared_ptr<const TensorFile> file;
  int64_t offset_bytes = 0;
  bool stays_open = false;  // else the file is closed with this place
};

// The external files of one model, each opened once; of very many the first kMostOpen stay open.
// Not thread-safe.
class ExternalFiles {
 public:
  static constexpr size_t kMostOpen = 128;  // a process may have 1024, and several models

  // An empty folder refuses all external data.
  explicit ExternalFiles(std::string folder) : folder_(std::move(folder)) {}

  // Where the `stored_bytes` bytes of the range lie, for a tensor called `where` in messages. Fails
  // with kInvalidModel when the file does not hold them.
  Result<ExternalPlace> Find(const ExternalRange& range, int64_t stored_bytes,
                             const std::string& where);

  // A file may be referred to many times over: what is brought into memory (small tensors, packed
  // ones, those of attributes) is bounded by eight times its size.
  Status SpendCopy(const ExternalRange& range, int64_t bytes, const std::string& where);

  int64_t size_bytes() const;  // of all files so far

 private:
  struct File {
    std::shared_ptr<const TensorFile> open;  // null: opened again when it is needed
    int64_t size_bytes = 0;
    int64_t copied_bytes = 0;
  };
  Result<std::shared_ptr<const TensorFile>> Open(const std::string& location,
                                                 const std::string& where);

  std::string folder_;
  std::map<std::string, File> files_;
};

}  // namespace ridge
