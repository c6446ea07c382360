// RunStatus: status.json, what became of a run, for those that start it again.
//
// A launcher's own exit code does not say it: one MPI gives 137 for a killed rank, another 9, and
// none tells a rank's 75 from a failure of its own.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

enum class RunPhase {
  kRunning,  // also of a run whose processes were killed
  kDone,
  kStopped,  // by a signal, checkpoint written
  kFailed,
};

struct RunStatus {
  RunPhase state = RunPhase::kRunning;
  int64_t step = 0;                        // updates done when this was written
  std::optional<int64_t> checkpoint = {};  // step of the newest complete one
  int64_t ranks = 1;
  std::vector<int64_t> slices = {};  // of a batch, by rank; empty: of one rank, or not known
  std::string why = {};              // kFailed
  bool may_retry = false;            // kFailed: the same command may end otherwise
};

inline constexpr char kStatusFile[] = "status.json";

std::string RunStatusToJson(const RunStatus& status);
Result<RunStatus> RunStatusFromJson(const std::string& text, const std::string& file);

// Of the run in `folder`; nullopt when it has none.  Fails with kInvalidData.
Result<std::optional<RunStatus>> ReadRunStatus(const std::string& folder);

// Writes it as this rank, atomically.  A failure that another rank wrote stays: it came first.
// Fails with kUnavailable.
Status WriteRunStatus(const std::string& folder, int rank, const RunStatus& status);

}  // namespace ridge
