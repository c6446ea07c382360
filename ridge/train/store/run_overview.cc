// Reads the end of metrics.jsonl only: a list of runs must not take time with their length.
#include "ridge/train/store/run_overview.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "ridge/core/file_lock.h"
#include "ridge/core/files.h"
#include "ridge/observe/metric_names.h"
#include "ridge/train/store/checkpoint_files.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kTailBytes = 1 << 16;

double ChangedAt(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return 0;
  return static_cast<double>(found.st_mtim.tv_sec) +
         1e-9 * static_cast<double>(found.st_mtim.tv_nsec);
}

// The reports of the last bytes of a file; the first of its lines may be a part.
std::vector<MetricsReport> LastReports(const std::string& path) {
  std::vector<MetricsReport> reports;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto bytes = static_cast<int64_t>(file.tellg());
  if (!file || bytes <= 0) return reports;
  file.seekg(std::max<int64_t>(0, bytes - kTailBytes));
  for (std::string line; std::getline(file, line);) {
    if (std::optional<MetricsReport> report = ParseMetricsLine(line))
      reports.push_back(std::move(*report));
  }
  return reports;
}

void TakeReports(const std::vector<MetricsReport>& reports, RunOverview& run) {
  for (const MetricsReport& report : reports) {
    run.step = report.step;
    run.epoch = report.epoch;
    run.step_s = report.step_s;
    if (report.evaluation_loss) {
      run.evaluated_on = report.evaluated_on;
      run.loss = report.evaluation_loss;
      run.accuracy = report.evaluation_accuracy;
      run.wer = FindMetric(report.evaluation_metrics, "wer");
    } else if (run.evaluated_on.empty() || run.evaluated_on == "training") {
      run.evaluated_on = "training";
      run.loss = report.loss;
      run.accuracy = report.accuracy;
    }
  }
}

void TakeSummary(const RunSummary& summary, RunOverview& run) {
  const bool test = summary.evaluated_on == "test";
  run.step = summary.steps;
  run.epoch = summary.epochs;
  run.evaluated_on = summary.evaluated_on;
  run.loss = summary.loss;
  run.accuracy = test ? summary.test_accuracy : summary.validation_accuracy;
  run.wer = FindMetric(summary.metrics, summary.evaluated_on + "/wer");
  run.step_s = summary.measured.step_s;
}

void Break(const Status& status, RunOverview& run) {
  run.state = RunState::kBroken;
  run.reason = status.message();
  const std::string head = run.folder + "/";
  if (run.reason.starts_with(head)) run.reason.erase(0, head.size());
}

// What a training makes in its folder.
bool LooksLikeARun(const fs::path& folder) {
  for (const char* name : {"options.json", "checkpoints", "summary.json", "metrics.jsonl"}) {
    std::error_code ignored;
    if (fs::exists(folder / name, ignored)) return true;
  }
  return false;
}

// Of folders within folders, those that cannot be read are left out.
std::error_code AddRuns(const fs::path& folder, int levels, std::vector<RunOverview>& runs) {
  std::error_code error, ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (LooksLikeARun(entry.path())) {
      runs.push_back(ReadOverview(entry.path().string()));
    } else if (levels > 1 && entry.is_directory(ignored)) {
      AddRuns(entry.path(), levels - 1, runs);
    }
  }
  return error;
}

}  // namespace

const char* RunStateName(RunState state) {
  switch (state) {
    case RunState::kFinished:
      return "finished";
    case RunState::kRunning:
      return "running";
    case RunState::kInterrupted:
      return "interrupted";
    case RunState::kBroken:
      break;
  }
  return "broken";
}

RunOverview ReadOverview(const std::string& folder) {
  RunOverview overview;
  overview.folder = folder;
  overview.started_s = ChangedAt(folder + (Run::Exists(folder) ? "/options.json" : ""));
  const std::optional<int64_t> process = FileLock::Holder(folder + "/run.lock");
  overview.process = process.value_or(0);
  overview.state = process ? RunState::kRunning : RunState::kInterrupted;
  if (process && !Run::Exists(folder)) return overview;
  const Result<Run> run = Run::Open(folder);
  if (!run.ok()) {
    Break(run.status(), overview);
    if (!Run::Exists(folder)) overview.reason = "has no options.json";
    return overview;
  }
  overview.options = run->options();
  TakeReports(LastReports(run->File("metrics.jsonl")), overview);
  if (process) return overview;
  Result<std::optional<RunSummary>> summary = run->Summary();
  if (!summary.ok()) {
    Break(summary.status(), overview);
  } else if (*summary) {
    overview.state = RunState::kFinished;
    TakeSummary(**summary, overview);
    overview.summary = std::move(*summary);
  }
  return overview;
}

Result<std::vector<RunOverview>> ListRuns(const std::string& folder) {
  if (Run::Exists(folder)) return std::vector{ReadOverview(folder)};
  std::vector<RunOverview> runs;
  if (const std::error_code error = AddRuns(folder, /*levels=*/2, runs)) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: cannot be read as a folder: {}", folder, error.message()));
  }
  std::sort(runs.begin(), runs.end(), [](const RunOverview& a, const RunOverview& b) {
    return std::tie(a.started_s, a.folder) > std::tie(b.started_s, b.folder);
  });
  return runs;
}

int64_t PlannedSteps(const Run& run, int64_t step) {
  if (run.options().steps) return *run.options().steps;
  const std::vector<int64_t> steps = run.checkpoints().Steps();
  if (steps.empty()) return 0;
  const Result<CheckpointState> state = ReadCheckpointState(run.checkpoints().PathOf(steps[0]));
  if (!state.ok() || state->schedule.total_steps < step) return 0;
  return state->schedule.total_steps;
}

}  // namespace ridge
