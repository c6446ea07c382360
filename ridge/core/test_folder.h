// TempFolder and TestFolder: where a test may write; FileSizeLimit: how much.  Only for tests.
#pragma once
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "ridge/core/status.h"

namespace ridge {

// Removed with everything in it at the end of the test.
class TempFolder {
 public:
  TempFolder() { RIDGE_CHECK(::mkdtemp(path_.data()) != nullptr, path_); }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

  // Returns the file's path.
  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(File(name), std::ios::binary) << bytes;
    return File(name);
  }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "ridge-test-XXXXXX").string();
};

// A folder of this process alone, so that test programs of several builds can run at the same time;
// removed when the process ends.
inline std::string TestFolder() {
  static const TempFolder folder;
  return folder.path();
}

// Limits the size of any file this process writes: the disk is "full" at that size.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    old_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limited = {bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limited);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit old_{};
  void (*old_handler_)(int) = nullptr;
};

}  // namespace ridge
