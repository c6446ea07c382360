// Ranks of one job must have been started alike.
#pragma once
#include <string>
#include <string_view>

#include "ridge/dist/communicator.h"

namespace ridge {

// Compares the hash of a text on all ranks; `what` names it: "options".  All ranks come to the same
// verdict.  Fails with kInvalidArgument, and names the first rank that differs from rank 0; as
// Exchange does otherwise.
Status CheckSameOnAllRanks(Communicator& ranks, const std::string& what, std::string_view text);

}  // namespace ridge
