// Where the ranks are, and how many threads one may use beside the others of its machine.
#pragma once
#include <cstdint>

#include "ridge/dist/communicator.h"

namespace ridge {

// The cores of this process, shared with the ranks on this machine that may use the same ones: a
// launcher that binds gave each rank its own.  OMP_NUM_THREADS is a number for each rank already.
// At least 1.  Fails as Exchange does.
Result<int64_t> ThreadsOfRank(Communicator& ranks);

// Whether all ranks are on one machine.  Fails as Exchange does.
Result<bool> AreOnOneMachine(Communicator& ranks);

}  // namespace ridge
