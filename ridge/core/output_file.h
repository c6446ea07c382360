// OutputFile: a file that grows by whole pieces.
//
// Append() writes all of a piece or none: on a full disk the part that was written is cut off
// again, so what is in the file can always be read.  Not buffered, so a killed process loses
// nothing that Append() took.  Errors are kUnavailable, with the path and the system's reason.
// Not thread-safe.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "ridge/core/status.h"

namespace ridge {

class OutputFile {
 public:
  enum class Mode {
    kReplace,  // empty it if it is there; "-" is standard output, which continues at its position
    kKeep,     // go on at its end; made if it is not there
    kNew,      // fail if it is there
  };
  static Result<OutputFile> Open(std::string path, Mode mode);

  OutputFile(OutputFile&& other) noexcept { Swap(other); }
  OutputFile& operator=(OutputFile&& other) noexcept {
    Swap(other);
    return *this;
  }
  ~OutputFile();  // closes; what it can't write out then is lost silently, so call Close()

  Status Append(std::string_view bytes);
  Status CutTo(int64_t size_bytes);  // drops what lies behind
  Status Sync();                     // to the disk; does nothing on what cannot be synced
  Status Close();                    // Sync() and close; a second call does nothing

  const std::string& path() const { return path_; }
  int64_t size_bytes() const { return size_bytes_; }

 private:
  OutputFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  void Swap(OutputFile& other);
  Status Failure(const char* what) const;

  std::string path_;
  int fd_ = -1;
  int64_t size_bytes_ = 0;
};

}  // namespace ridge
