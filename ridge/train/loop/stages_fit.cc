#include "ridge/train/loop/stages_fit.h"

#include <fmt/format.h>

#include "ridge/core/units.h"

namespace ridge {

Status CheckStagesFit(const PlannedJob& job, Agreement& ranks) {
  RIDGE_ASSIGN_OR_RETURN(const auto all, ranks.All({static_cast<double>(job.memory.needed_bytes()),
                                                    static_cast<double>(job.limit_bytes)}));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const double needed = all[rank][0], limit = all[rank][1];
    if (needed <= limit) continue;
    return Status(
        ErrorCode::kOutOfMemory,
        fmt::format("rank {} needs {}; {} {}. hint: a larger p, or a smaller --batch with "
                    "more --accumulate",
                    rank, FormatBytes(static_cast<int64_t>(needed)), job.limit_name,
                    FormatBytes(static_cast<int64_t>(limit))));
  }
  return Status();
}

}  // namespace ridge
