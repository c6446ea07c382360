#include "ridge/train/store/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "ridge/core/files.h"
#include "ridge/core/safetensors.h"
#include "ridge/models/model.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

constexpr char kOptions[] = "options.json";
constexpr int64_t kMostJsonBytes = 1 << 20;

// The run with the newest options.json; of equal times the one with the greater name.
std::string NewestRun() {
  std::error_code error;
  std::vector<std::pair<fs::file_time_type, std::string>> runs;
  for (const fs::directory_entry& entry : fs::directory_iterator(kRunsFolder, error)) {
    const fs::file_time_type time = fs::last_write_time(entry.path() / kOptions, error);
    if (!error) runs.emplace_back(time, entry.path().string());
  }
  return runs.empty() ? "" : std::max_element(runs.begin(), runs.end())->second;
}

}  // namespace

bool Run::Exists(const std::string& folder) {
  std::error_code error;
  return !folder.empty() && fs::exists(fs::path(folder) / kOptions, error);
}

Result<Run> Run::Open(const std::string& folder) {
  const std::string path = folder.empty() ? NewestRun() : folder;
  if (path.empty()) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("no run under {}/. hint: name the run's folder", kRunsFolder));
  }
  if (!Exists(path)) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: holds no run: there is no {}", path, kOptions));
  }
  const std::string file = path + "/" + kOptions;
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kMostJsonBytes));
  RIDGE_ASSIGN_OR_RETURN(TrainOptions options, OptionsFromJson(text, file));
  return Run(path, std::move(options));
}

std::string Run::ModelSource(const std::vector<ModelSize>& instead) const {
  if (IsGraphFile(options_.model)) return File("model.ridge");
  if (IsOnnxFile(options_.model)) return File("model.onnx");
  std::vector<ModelSize> sizes = instead;
  if (const auto dims = ParseDims(options_.data_dims); dims.ok()) {
    for (const auto& [name, value] : *dims) {
      const auto is_it = [&name = name](const ModelSize& size) { return size.name == name; };
      if (std::none_of(instead.begin(), instead.end(), is_it)) sizes.push_back({name, value});
    }
  }
  return WithSizes(options_.model, sizes);
}

Result<std::optional<RunSummary>> Run::Summary() const {
  const std::string file = File("summary.json");
  std::error_code error;
  if (!fs::exists(file, error)) return {std::nullopt};
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kMostJsonBytes));
  RIDGE_ASSIGN_OR_RETURN(RunSummary summary, SummaryFromJson(text, file));
  return {std::move(summary)};
}

std::vector<std::string> Run::MetricsLines() const {
  const Result<std::string> text = ReadFile(File("metrics.jsonl"));
  std::vector<std::string> lines;
  std::istringstream stream(text.ok() ? *text : "");
  for (std::string line; std::getline(stream, line);) lines.push_back(std::move(line));
  return lines;
}

Result<std::map<std::string, Tensor>> TrainedTensors(const std::string& model,
                                                     const std::string& checkpoint,
                                                     std::vector<std::string>* warnings) {
  std::map<std::string, Tensor> tensors;
  if (!Run::Exists(model)) return tensors;
  RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(model));
  RIDGE_ASSIGN_OR_RETURN(LoadedCheckpoint found, run.checkpoints().Find(checkpoint));
  if (warnings != nullptr) *warnings = std::move(found.warnings);
  for (const char* name : {"/parameters.safetensors", "/state.safetensors"}) {
    RIDGE_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(found.path + name));
    for (const SafetensorsEntry& entry : file.entries()) {
      RIDGE_ASSIGN_OR_RETURN(tensors[entry.name], file.Load(entry.name));
    }
  }
  return tensors;
}

}  // namespace ridge
