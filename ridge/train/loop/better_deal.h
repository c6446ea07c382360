// BetterDeal: how many slices of a batch each rank should compute, by what it was measured to take
// (`--shares auto`).
//
// A rank's seconds are taken as so many a slice, though its updates are the same for any share, so
// a deal that was found is judged again by what it takes: where all ranks take as long as each
// other nothing changes.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace ridge {

// Of a rank, since the last look.
struct RankRate {
  int64_t slices = 1;    // of a batch
  double compute_s = 0;  // of a step, without collectives
};

struct Deal {
  std::vector<int64_t> slices;  // by rank
  double slowest_s = 0;         // compute of the slowest rank, foreseen
};

// The deal whose slowest rank is the fastest; equal ones to the lower rank.  REQUIRES: as many
// slices as ranks.
Deal FastestDeal(const std::vector<RankRate>& ranks);

// How long the new deal would be used, and what a start with it takes.
struct DealTerms {
  int64_t steps_left = 0;
  double start_s = 0;
};
// FastestDeal(), unless it is the present one, or saves too little: less than a tenth of the
// slowest rank's step, or less than two starts until the end.
std::optional<Deal> BetterDeal(const std::vector<RankRate>& ranks, const DealTerms& terms);

}  // namespace ridge
