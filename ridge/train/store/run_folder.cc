#include "ridge/train/store/run_folder.h"

#include <fmt/format.h>

#include <filesystem>

#include "ridge/core/files.h"
#include "ridge/train/store/run.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

constexpr int kMostRuns = 1'000'000;

// mkdir is the lock: two processes that start together get two folders.
Result<std::string> MakeNumbered(const std::string& model) {
  RIDGE_RETURN_IF_ERROR(MakeFolders(kRunsFolder));
  for (int n = 1; n < kMostRuns; ++n) {
    const std::string path = fmt::format("{}/{}-{}", kRunsFolder, ShortModelName(model), n);
    std::error_code error;
    if (fs::create_directory(path, error)) return path;
    if (error) {
      return Status(ErrorCode::kUnavailable,
                    fmt::format("{}: cannot make the folder: {}", path, error.message()));
    }
  }
  return Status(ErrorCode::kUnavailable, fmt::format("{}: no free number", kRunsFolder));
}

}  // namespace

Result<RunFolder> RunFolder::Create(const std::string& out, const std::string& model) {
  std::string path = out;
  if (out.empty()) {
    RIDGE_ASSIGN_OR_RETURN(path, MakeNumbered(model));
  } else if (Run::Exists(out)) {
    return InvalidArgument(
        fmt::format("{}: holds a run already. hint: --resume {} goes on with it; another "
                    "--out starts a new one",
                    out, out));
  }
  RIDGE_RETURN_IF_ERROR(MakeFolders(path + "/checkpoints"));
  return RunFolder(std::move(path));
}

Result<RunFolder> RunFolder::Continue(const std::string& path) {
  RIDGE_RETURN_IF_ERROR(MakeFolders(path + "/checkpoints"));
  return RunFolder(path);
}

Result<FileLock> RunFolder::Lock() const {
  LockHolder holder;
  RIDGE_ASSIGN_OR_RETURN(std::optional<FileLock> lock, FileLock::Take(File("run.lock"), holder));
  if (lock) return std::move(*lock);
  return Status(ErrorCode::kUnavailable,
                fmt::format("{}: {} is training in this folder. hint: wait until it has ended, or "
                            "stop it: its checkpoint is kept",
                            path_, HolderText(holder)));
}

std::string ShortModelName(const std::string& model) {
  std::string name = fs::path(model.substr(0, model.find(':'))).filename().string();
  for (const char* suffix : {".ridge", ".onnx"}) {
    if (name.ends_with(suffix)) name.resize(name.size() - std::string_view(suffix).size());
  }
  return name.empty() ? "model" : name;
}

}  // namespace ridge
