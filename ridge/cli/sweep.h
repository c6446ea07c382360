// `ridge train --sweep lr=1e-3,3e-4`: a run for each value, one after another, and a table of them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/cli/train_flags.h"

namespace ridge::cli {

// Runs `ridge` as a child process for every combination of the values of `sweeps`, each
// "OPTION=VALUE,VALUE", with the options of `flags`.  The runs lie in --out, else in the next free
// runs/MODEL-sweep-N.  A run that fails does not end the sweep; one that is stopped, refused or
// does not fit does.  Returns the exit code: 0 when all runs have ended, else that of the run that
// ended the sweep, else 1. Fails with kInvalidArgument: no such option, a value it does not take,
// one value given twice.
Result<int> RunSweep(const std::vector<std::string>& sweeps, const TrainFlags& flags,
                     const OutputFlags& output);

}  // namespace ridge::cli
