// What of a run that goes on differs from the run so far, and changes its bits.
#pragma once
#include <string>

#include "ridge/train/store/checkpoint_state.h"

namespace ridge {

// Changed data, number of threads, type of device, libraries, mesh or kernels: "2 threads; the run
// has used 4"; "" for none.  `now`: a checkpoint's state as the run would write it now.
std::string RunDifference(const CheckpointState& now, const CheckpointState& then);

}  // namespace ridge
