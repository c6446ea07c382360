// RunOverview: what a run folder tells of its run, for lists; it never fails and changes nothing.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ridge/observe/metrics.h"
#include "ridge/train/store/run.h"

namespace ridge {

enum class RunState {
  kFinished,     // has its summary
  kRunning,      // a process trains in the folder
  kInterrupted,  // neither
  kBroken,       // options.json or summary.json cannot be read
};
const char* RunStateName(RunState state);  // "finished"

struct RunOverview {
  std::string folder;
  RunState state = RunState::kBroken;
  std::string reason;    // of kBroken
  int64_t process = 0;   // of kRunning; 0: unknown
  TrainOptions options;  // empty when they cannot be read, or are not written yet
  double started_s = 0;  // of options.json, else of the folder; since 1970
  std::optional<RunSummary> summary;

  // These of the summary, else of the last lines of metrics.jsonl: the last evaluation for loss,
  // accuracy and word error rate.  0 or nothing before the first report.
  int64_t step = 0;
  int64_t epoch = 0;  // completed ones of the summary, else from 1
  std::optional<double> loss, accuracy, wer;
  std::string evaluated_on;  // the data of these: "test", "validation", "training"
  double step_s = 0;
};

RunOverview ReadOverview(const std::string& folder);

// The runs among the folders in `folder`, newest first; of equal times the greater name first.
// Those in a folder of theirs (a sweep's) are among them.  `folder` may be a run itself.  Fails
// with kInvalidData when it is no folder.
Result<std::vector<RunOverview>> ListRuns(const std::string& folder);

// The steps that a run is planned for: of its options, else of its newest checkpoint; 0: unknown,
// also when the checkpoint is of an earlier end than `step`.
int64_t PlannedSteps(const Run& run, int64_t step);

}  // namespace ridge
