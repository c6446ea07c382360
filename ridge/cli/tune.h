// `ridge bench device --tune`: times the kernels that models could use, and stores the times.
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

// Adds to the stored times of this machine, unless they are stale.
Result<int> RunTune(const TuneRequest& request);

}  // namespace ridge::cli
