// TestFolder: where a test may write.  Only for tests.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>

#include "ridge/core/status.h"

namespace ridge {

// A folder of this process alone, so that test programs of several builds can run at the same time;
// removed when the process ends.
inline std::string TestFolder() {
  struct Folder {
    std::string path = (std::filesystem::temp_directory_path() / "ridge-test-XXXXXX").string();
    Folder() { RIDGE_CHECK(::mkdtemp(path.data()) != nullptr, path); }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  return folder.path;
}

}  // namespace ridge
