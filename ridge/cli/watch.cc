// `ridge watch`: the reports of a run as they are written, from another terminal.
//
// The lock of the run folder tells whether a process trains there.  It is asked before the file is
// read, so no report that was written before the process ended is missed.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/output.h"
#include "ridge/cli/train_observer.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/file_lock.h"
#include "ridge/observe/metrics.h"
#include "ridge/report/text.h"
#include "ridge/train/store/run_overview.h"

namespace ridge::cli {
namespace {

constexpr size_t kFirstLines = 10;  // of those that are there, as tail shows
constexpr int kPause_us = 200'000;

struct WatchVerb {
  std::optional<std::string> run;
  bool json = false;
};

// The complete lines that were added to a file since the last call.
class Follower {
 public:
  explicit Follower(std::string path) : path_(std::move(path)) {}

  std::vector<std::string> NewLines() {
    std::vector<std::string> lines;
    std::ifstream file(path_, std::ios::binary | std::ios::ate);
    if (!file) return lines;
    at_ = std::clamp<std::streamoff>(file.tellg(), 0, at_);  // a resumed run cuts its file
    file.seekg(at_);
    for (std::string line; std::getline(file, line) && !file.eof();) {  // eof: without its end
      at_ += static_cast<std::streamoff>(line.size()) + 1;
      lines.push_back(std::move(line));
    }
    return lines;
  }

 private:
  std::string path_;
  std::streamoff at_ = 0;
};

std::string ReportText(const Run& run, const MetricsReport& report) {
  if (report.evaluation_loss) return EvaluationLine(report);
  ProgressReport shown;
  shown.epoch = report.epoch;
  shown.epochs = run.options().steps ? 0 : run.options().epochs.value_or(1);
  if (shown.epoch > shown.epochs) shown.epochs = 0;
  shown.step = report.step;
  shown.steps = PlannedSteps(run, report.step);
  shown.loss = report.loss;
  shown.accuracy = report.accuracy;
  shown.samples_s = report.samples_s;
  shown.input_wait = report.input_wait;
  shown.input_stages = report.input_stages;
  shown.gpu = report.gpu;
  return PlainProgress(shown);
}

void PrintLines(const Run& run, const std::vector<std::string>& lines, bool json) {
  for (const std::string& line : lines) {
    if (json) {
      PrintData(line + "\n");
    } else if (const std::optional<MetricsReport> report = ParseMetricsLine(line)) {
      PrintData(ReportText(run, *report) + "\n");
    }
  }
}

Result<int> Conclude(const Run& run, bool json) {
  RIDGE_ASSIGN_OR_RETURN(const std::optional<RunSummary> summary, run.Summary());
  if (!summary) {
    return Status(
        ErrorCode::kFailed,
        fmt::format("{}: stopped after step {}; no process trains here. hint: ridge train "
                    "--resume {}",
                    run.path(), ReadOverview(run.path()).step, run.path()));
  }
  if (!json) PrintData(ResultLine(*summary) + "\n" + EarlyStopLine(*summary));
  return kExitOk;
}

Result<int> Watch(const WatchVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(verb.run.value_or("")));
  Follower follower(run.File("metrics.jsonl"));
  for (bool first = true;; first = false) {
    const bool trained = FileLock::Holder(run.File("run.lock")).has_value();
    std::vector<std::string> lines = follower.NewLines();
    if (first && !verb.json && lines.size() > kFirstLines)
      lines.erase(lines.begin(), lines.end() - kFirstLines);
    PrintLines(run, lines, verb.json);
    RIDGE_RETURN_IF_ERROR(FinishOutput());
    if (!trained) return Conclude(run, verb.json);
    ::usleep(kPause_us);
  }
}

}  // namespace

VerbBody AddWatch(CLI::App& app) {
  auto verb = std::make_shared<WatchVerb>();
  AddArgument(app, "RUN", verb->run, "A run folder (the newest under runs/)");
  AddSwitch(app, "--json", verb->json, "Print the lines of metrics.jsonl, all of them")
      ->group(kOutputGroup);
  return [verb] { return Watch(*verb); };
}

}  // namespace ridge::cli
