#include "ridge/train/loop/better_deal.h"

#include <algorithm>

namespace ridge {
namespace {

constexpr double kLeastGain = 0.1;  // of the slowest rank's step
constexpr double kLeastStarts = 2;  // that the rest of the run must save

double SecondsOf(const RankRate& rank, int64_t slices) {
  return rank.compute_s / static_cast<double>(rank.slices) * static_cast<double>(slices);
}

}  // namespace

// Slice after slice goes to the rank that has it done first.
Deal FastestDeal(const std::vector<RankRate>& ranks) {
  Deal deal;
  deal.slices.assign(ranks.size(), 1);
  int64_t left = -static_cast<int64_t>(ranks.size());
  for (const RankRate& rank : ranks) left += rank.slices;
  for (; left > 0; --left) {
    size_t first = 0;
    for (size_t r = 1; r < ranks.size(); ++r) {
      if (SecondsOf(ranks[r], deal.slices[r] + 1) < SecondsOf(ranks[first], deal.slices[first] + 1))
        first = r;
    }
    ++deal.slices[first];
  }
  for (size_t r = 0; r < ranks.size(); ++r)
    deal.slowest_s = std::max(deal.slowest_s, SecondsOf(ranks[r], deal.slices[r]));
  return deal;
}

std::optional<Deal> BetterDeal(const std::vector<RankRate>& ranks, const DealTerms& terms) {
  double slowest_s = 0;
  for (const RankRate& rank : ranks) slowest_s = std::max(slowest_s, rank.compute_s);
  Deal deal = FastestDeal(ranks);
  const double saved_s = slowest_s - deal.slowest_s;
  const double least_s = kLeastStarts * terms.start_s;
  if (saved_s < kLeastGain * slowest_s || saved_s * static_cast<double>(terms.steps_left) < least_s)
    return std::nullopt;
  return deal;
}

}  // namespace ridge
