// Ranks within one process, a thread each: for tests, and for devices that are not there.
#pragma once
#include <memory>
#include <vector>

#include "ridge/dist/communicator.h"

namespace ridge {

// By rank.  A rank leaves the job when its communicator is destroyed; then Exchange() fails for the
// others with kUnavailable.  Exchange() fails with kInternal, at all ranks concerned, when a rank
// sends other bytes than are expected.
std::vector<std::unique_ptr<Communicator>> MakeLocalCommunicators(int ranks);

}  // namespace ridge
