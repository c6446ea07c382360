// Supervise: runs the ranks of a training on this machine, and starts them again after failures.
//
// Parent of mpirun.  What became of an attempt is read from the run's status.json, never from
// mpirun's exit code.  A restart goes on from the newest complete checkpoint; only restarts without
// a newer one count, and after the first of these there is one rank fewer each time.
#pragma once
#include <functional>
#include <optional>

#include "ridge/cli/launch_files.h"
#include "ridge/core/status.h"
#include "ridge/dist/mpirun.h"
#include "ridge/train/store/run_status.h"

namespace ridge::cli {

// How one attempt ended.
struct Attempt {
  std::optional<RunStatus> status;                      // none: it did not come to its run folder
  int code = 0;                                         // of mpirun; 128 plus a signal's number
  bool asked = false;                                   // by a signal to stop
  int64_t checkpoint_before = 0, checkpoint_after = 0;  // newest steps; 0: none
};

class RestartPolicy {
 public:
  struct Limits {
    int64_t devices = 1, min_devices = 1;
    int64_t max_restarts = 3;  // in a row, without progress
  };
  explicit RestartPolicy(const Limits& limits) : limits_(limits), devices_(limits.devices) {}

  struct Decision {
    bool again = false;
    int code = 0;      // of the launch, unless again
    std::string text;  // what happened, for the user
  };
  Decision After(const Attempt& attempt);
  int64_t devices() const { return devices_; }  // of the next attempt

 private:
  Decision Again(const std::string& what, bool progress);

  const Limits limits_;
  int64_t devices_;
  int64_t without_progress_ = 0;  // restarts in a row
};

// The exit code of the launch.  `first`: words of the first attempt behind the program, `job.words`
// those of the others.  Fails with kDevice (no mpirun), kUnavailable.
Result<int> Supervise(const LaunchJob& job, const Mpirun& mpirun,
                      const std::vector<std::string>& first, const RestartPolicy::Limits& limits,
                      const std::function<void(const std::string&)>& say);

}  // namespace ridge::cli
