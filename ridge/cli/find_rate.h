// `ridge train --find-lr`: a short training whose learning rate rises, and what it says about a
// good one.  No run is left behind.
#pragma once
#include "ridge/cli/train_flags.h"
#include "ridge/train/loop/trainer.h"

namespace ridge::cli {

// Trains 100 updates (--steps N) from 1e-7 to 1 with the request's other options, in a folder that
// is removed, and prints the curve and the suggestion, or JSON.  Fails as Train() and FindRate()
// do, but a loss that becomes infinite only ends the curve.  Returns the exit code.
Result<int> RunFindRate(const TrainRequest& request, const Machine& machine,
                        const OutputFlags& output, bool json);

}  // namespace ridge::cli
