// Which ranks share a machine, and how many threads each may use there.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ridge/dist/communicator.h"

namespace ridge {

// The cores of this process, shared with the ranks on this machine that may use the same ones: a
// launcher that binds gave each rank its own.  OMP_NUM_THREADS is a number for each rank already.
// At least 1.  Fails as Exchange does.
Result<int64_t> ThreadsOfRank(Communicator& ranks);

// The first core of a rank of so many threads, where the ranks that share cores take all of them
// together: then each can have its own.  None: other threads may come between.  Fails as Exchange
// does.
Result<std::optional<int>> FirstCoreOfRank(Communicator& ranks, int threads);

// Whether each rank of so many threads leaves a core for what it does beside them. The same at all
// ranks.  Fails as Exchange does.
Result<bool> AllHaveACoreToSpare(Communicator& ranks, int threads);

// The first rank of each machine that the ranks are on, in rising order.  Fails as Exchange does.
Result<std::vector<int>> FirstRankOfMachines(Communicator& ranks);

}  // namespace ridge
