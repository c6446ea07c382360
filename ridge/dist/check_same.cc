#include "ridge/dist/check_same.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ridge/core/sha256.h"
#include "ridge/dist/gather.h"

namespace ridge {

Status CheckSameOnAllRanks(Communicator& ranks, const std::string& what, std::string_view text) {
  std::array<char, 64> mine{};
  const std::string hash = Sha256Hex(text);
  std::copy(hash.begin(), hash.end(), mine.begin());
  RIDGE_ASSIGN_OR_RETURN(const auto all, GatherFromAll(ranks, mine));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    return InvalidArgument(
        fmt::format("rank {} has other {} than rank 0; they must be the same on all {} ranks. "
                    "hint: one program, one command line and the same RIDGE_* variables everywhere",
                    rank, what, all.size()));
  }
  return Status();
}

}  // namespace ridge
