// ScratchFolder: a folder among temporary files that is gone at the end, with what is in it.
#pragma once
#include <string>

#include "ridge/core/status.h"

namespace ridge {

class ScratchFolder {
 public:
  // An empty folder, of this process alone: "/tmp/ridge-NAME-Xc3k9T".  Fails with kUnavailable when
  // none can be made.
  static Result<ScratchFolder> Make(const std::string& name);
  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;  // "" once it was moved from
};

}  // namespace ridge
