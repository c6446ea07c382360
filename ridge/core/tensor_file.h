// TensorFile: an open file from which tensors read their numbers when they are wanted.
//
// Weights are wanted once, when a run fills its arena: until then they lie in the file, and the
// process holds no copy of them.  Others may rename or delete the file meanwhile; a file that was
// written to is an error, never other numbers.
#pragma once
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>

#include "ridge/core/owned_fd.h"
#include "ridge/core/tensor.h"

namespace ridge {

// Smaller tensors are read at once: they cost nothing, and much code wants to see them.
inline constexpr int64_t kStaysInFileFrom = int64_t{1} << 15;

class TensorFile {
 public:
  // The file as it is now.  Errors begin with `name` and have `code`.
  // REQUIRES: a regular file.
  static Result<std::shared_ptr<const TensorFile>> Adopt(OwnedFd fd, std::string name,
                                                         ErrorCode code);

  int fd() const { return fd_.get(); }
  int64_t size_bytes() const { return size_bytes_; }
  // Thread-safe.  Fails when the file can't be read or is no longer what Adopt() saw; what was read
  // means nothing then.
  Status Read(int64_t offset, int64_t bytes, void* to) const;

 private:
  TensorFile(OwnedFd fd, std::string name, ErrorCode code)
      : fd_(std::move(fd)), name_(std::move(name)), code_(code) {}
  Status Bad(const std::string& text) const;
  Status CheckUnchanged() const;

  OwnedFd fd_;
  std::string name_;
  ErrorCode code_;
  int64_t size_bytes_ = 0;
  timespec written_ = {};  // the last write
};

// A tensor whose row-major little-endian numbers are bytes of the file from `offset` on.
// REQUIRES: they lie within it.
Tensor TensorInFile(TensorType type, std::shared_ptr<const TensorFile> file, int64_t offset);

// The same numbers in another element type; they stay where they are if those of `from` do.
Tensor Converted(const Tensor& from, DType to);
// Elements [begin, end) of `from` in another element type.
Status ReadConverted(const Tensor& from, DType to_type, int64_t begin, int64_t end, void* to);

}  // namespace ridge
