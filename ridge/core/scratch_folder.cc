#include "ridge/core/scratch_folder.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

namespace ridge {

namespace fs = std::filesystem;

Result<ScratchFolder> ScratchFolder::Make(const std::string& name) {
  std::error_code error;
  std::string path =
      (fs::temp_directory_path(error) / fmt::format("ridge-{}-XXXXXX", name)).string();
  if (error || ::mkdtemp(path.data()) == nullptr) {
    return Status(ErrorCode::kUnavailable,
                  fmt::format("{}: no folder can be made there. hint: TMPDIR names another", path));
  }
  return ScratchFolder(path);
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept
    : path_(std::exchange(other.path_, "")) {}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace ridge
