// What `ridge bench device --tune` does: times the kernels that models could take, and keeps that.
#pragma once
#include <string>
#include <vector>

#include "ridge/cli/machine.h"
#include "ridge/cli/train_flags.h"

namespace ridge::cli {

struct TuneRequest {
  std::vector<std::string> models;  // none: the workloads of `ridge bench suite`
  TrainFlags flags;                 // batch, precision, threads, ...
  OutputFlags output;
  bool json = false;
};

// Adds to what was kept on this machine before, unless that has become stale.
Result<int> RunTune(const TuneRequest& request);

}  // namespace ridge::cli
