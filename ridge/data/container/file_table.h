// FileTable: the files of a container, read at any place by several threads.
//
// A plain file is opened for each read, so that any number of files needs no descriptors, and
// refused when its size, time or inode is another than when it was opened first.  A gzip file
// cannot be read at any place: its content is held in memory.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ridge/core/owned_fd.h"
#include "ridge/core/tensor.h"
#include "ridge/data/file_stamp.h"

namespace ridge {

// Where something lies in a FileTable, in 8 bytes.
class FilePlace {
 public:
  static constexpr int kOffsetBits = 44;

  FilePlace() = default;
  FilePlace(int64_t file, int64_t offset)
      : bits_(static_cast<uint64_t>(file) << kOffsetBits | static_cast<uint64_t>(offset)) {}
  int64_t file() const { return static_cast<int64_t>(bits_ >> kOffsetBits); }
  int64_t offset() const {
    return static_cast<int64_t>(bits_ & ((uint64_t{1} << kOffsetBits) - 1));
  }
  bool operator==(const FilePlace&) const = default;

 private:
  uint64_t bits_ = 0;
};

class FileTable {
 public:
  // A file opened for reads one after another; belongs to one thread.
  class Reader {
   public:
    // The message of a failure is the bare reason.  REQUIRES: the bytes lie in the file.
    Status Read(int64_t offset, std::span<char> to) const;

   private:
    friend class FileTable;
    std::string_view content_;  // of a gzip file
    OwnedFd fd_;
  };

  // `is_plain` looks at up to 16 first bytes of a file that begins as gzip does.  Fails with
  // kInvalidData for an empty or unreadable file, with kOutOfMemory when the content of gzip files
  // does not fit.
  static Result<FileTable> Open(const std::vector<std::string>& paths,
                                const std::function<bool(std::string_view)>& is_plain);

  int64_t size() const { return static_cast<int64_t>(files_.size()); }
  const std::string& path(int64_t file) const { return At(file).path; }
  int64_t bytes(int64_t file) const { return At(file).bytes; }  // of its content
  std::string_view content(int64_t file) const;                 // of a gzip file, else empty
  // The message of a failure is the bare reason.
  Result<Reader> OpenFile(int64_t file) const;
  int64_t resident_bytes() const;

 private:
  struct File {
    std::string path;
    int64_t bytes = 0;
    FileStamp stamp;  // of a plain file
    Tensor content;
    bool is_gzip = false;
  };
  const File& At(int64_t file) const { return files_[static_cast<size_t>(file)]; }
  static Status OpenFirst(File& file, const std::function<bool(std::string_view)>& is_plain);
  static Status Inflate(File& file);

  std::vector<File> files_;
};

// FileWindow: bytes of one file, read ahead, for a pass in mostly rising order.  The message of a
// failure is the bare reason.
class FileWindow {
 public:
  static Result<FileWindow> Open(const FileTable& files, int64_t file);

  int64_t size() const { return size_; }
  // Fewer bytes than asked for only at the end of the file; valid until the next call.
  Result<std::string_view> At(int64_t offset, int64_t bytes);

 private:
  std::string_view content_;
  FileTable::Reader reader_;
  int64_t size_ = 0;
  std::vector<char> buffer_;
  int64_t begin_ = 0, end_ = 0;  // of what the buffer holds
};

}  // namespace ridge
