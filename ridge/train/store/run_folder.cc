#include "ridge/train/store/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "ridge/core/files.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

constexpr char kRuns[] = "runs";
constexpr int kMostRuns = 1'000'000;

// The run with the newest options.json; of equal times the one with the greater name.
std::string NewestRun() {
  std::error_code error;
  std::vector<std::pair<fs::file_time_type, std::string>> runs;
  for (const fs::directory_entry& entry : fs::directory_iterator(kRuns, error)) {
    const fs::path options = entry.path() / "options.json";
    const fs::file_time_type time = fs::last_write_time(options, error);
    if (!error) runs.emplace_back(time, entry.path().string());
  }
  return runs.empty() ? "" : std::max_element(runs.begin(), runs.end())->second;
}

// mkdir is the lock: two processes that start together get two folders.
Result<std::string> MakeNumbered(const std::string& model) {
  RIDGE_RETURN_IF_ERROR(MakeFolders(kRuns));
  for (int n = 1; n < kMostRuns; ++n) {
    const std::string path = fmt::format("{}/{}-{}", kRuns, ShortModelName(model), n);
    std::error_code error;
    if (fs::create_directory(path, error)) return path;
    if (error) {
      return Status(ErrorCode::kUnavailable,
                    fmt::format("{}: cannot make the folder: {}", path, error.message()));
    }
  }
  return Status(ErrorCode::kUnavailable, fmt::format("{}: no free number", kRuns));
}

}  // namespace

bool RunFolder::HoldsRun(const std::string& folder) {
  std::error_code error;
  return !folder.empty() && fs::exists(fs::path(folder) / "options.json", error);
}

Result<RunFolder> RunFolder::Create(const std::string& out, const std::string& model) {
  std::string path = out;
  if (out.empty()) {
    RIDGE_ASSIGN_OR_RETURN(path, MakeNumbered(model));
  } else if (HoldsRun(out)) {
    return Status(ErrorCode::kInvalidArgument,
                  fmt::format("{}: holds a run already. hint: --resume {} goes on with it; another "
                              "--out starts a new one",
                              out, out));
  }
  RIDGE_RETURN_IF_ERROR(MakeFolders(path + "/checkpoints"));
  return RunFolder(std::move(path));
}

Result<RunFolder> RunFolder::Open(const std::string& folder) {
  const std::string path = folder.empty() ? NewestRun() : folder;
  if (path.empty()) {
    return Status(
        ErrorCode::kInvalidData,
        fmt::format("no run under {}/. hint: name the run's folder: --resume DIR", kRuns));
  }
  if (!HoldsRun(path)) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: holds no run: there is no options.json", path));
  }
  RIDGE_RETURN_IF_ERROR(MakeFolders(path + "/checkpoints"));
  return RunFolder(path);
}

Result<FileLock> RunFolder::Lock() const {
  int64_t holder = 0;
  RIDGE_ASSIGN_OR_RETURN(std::optional<FileLock> lock, FileLock::Take(File("run.lock"), holder));
  if (lock) return std::move(*lock);
  const std::string who = holder > 0 ? fmt::format("process {}", holder) : "another process";
  return Status(ErrorCode::kUnavailable,
                fmt::format("{}: {} is training in this folder. hint: wait until it has ended, or "
                            "stop it: its checkpoint is kept",
                            path_, who));
}

std::string ShortModelName(const std::string& model) {
  std::string name = fs::path(model.substr(0, model.find(':'))).filename().string();
  for (const char* suffix : {".ridge", ".onnx"}) {
    if (name.ends_with(suffix)) name.resize(name.size() - std::string_view(suffix).size());
  }
  return name.empty() ? "model" : name;
}

}  // namespace ridge
