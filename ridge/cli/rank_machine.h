// The machine of a rank: what `ridge train` and `ridge bench step` open on each of several devices.
#pragma once
#include "ridge/cli/machine.h"
#include "ridge/dist/mpi_communicator.h"
#include "ridge/train/options/options.h"

namespace ridge::cli {

// Fails at all ranks unless the version and the options that decide the result are the same
// everywhere.
Status CheckAlike(Communicator& ranks, TrainOptions options);

// The machine of a rank, which computes with its share of the cores.  The first rank speaks, and
// measures where there is no profile yet; the others read what it kept.  Called by all ranks.
Result<OpenedMachine> OpenRank(MachineChoice choice, const TrainOptions& options,
                               MpiCommunicator& ranks, bool quiet);

}  // namespace ridge::cli
