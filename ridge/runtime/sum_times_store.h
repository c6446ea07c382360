// Times of sums over ranks on disk: CACHE/profiles/<device>.<mpi>-<ranks>-<machines>.json, one for
// each CPU type and threads of a rank, MPI, number of ranks and of machines.
#pragma once
#include <string>

#include "ridge/plan/cost/sum_times.h"

namespace ridge {

// Reads device, mpi, ranks and machines of `key`.
std::string SumTimesPath(const SumTimes& key);

// Fails with kInvalidData when there are none, or they are damaged or of another version of the
// MPI; a key whose MPI is "Open MPI" takes those of any version.
Result<SumTimes> LoadSumTimes(const SumTimes& key);
Status SaveSumTimes(const SumTimes& times);

}  // namespace ridge
