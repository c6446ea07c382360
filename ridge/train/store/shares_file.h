// shares.jsonl of a run: a line for each time that `--shares auto` dealt the slices anew.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

inline constexpr char kSharesFile[] = "shares.jsonl";

struct SharesLine {
  int64_t step = 0;             // updates done
  std::vector<int64_t> slices;  // by rank, from now on
  // Before: by rank, and what a step was measured to take without collectives.
  std::vector<int64_t> slices_before;
  std::vector<double> compute_s;
};

// Fails with kUnavailable.
Status AddShares(const std::string& path, const SharesLine& line);

// The newest slices for so many ranks, `slices` together; none: there is no such line.  A line that
// was cut off is none.
std::optional<std::vector<int64_t>> NewestShares(const std::string& path, size_t ranks,
                                                 int64_t slices);

}  // namespace ridge
