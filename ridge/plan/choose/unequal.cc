#include "ridge/plan/choose/unequal.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "ridge/core/units.h"

namespace ridge {
namespace {

constexpr int64_t kMostSlices = 64;

using Members = std::vector<UnequalMember>;
// Slices of each member, of so many together.
using Deal = std::function<Result<std::vector<int64_t>>(int64_t slices, int64_t samples)>;

// Each slice goes to the member that is done with it first: no other deal ends earlier, as none
// gets faster by more slices.
Result<std::vector<int64_t>> DealtGreedily(const Members& members, int64_t slices,
                                           int64_t samples) {
  std::vector<int64_t> dealt(members.size(), 1);
  std::vector<double> next_s(members.size());
  const auto price = [&](size_t i) -> Status {
    RIDGE_ASSIGN_OR_RETURN(const LayoutCost cost, members[i].cost(dealt[i] + 1, samples));
    next_s[i] = cost.seconds.all();
    return Status();
  };
  for (size_t i = 0; i < members.size(); ++i) RIDGE_RETURN_IF_ERROR(price(i));
  for (int64_t left = slices - static_cast<int64_t>(members.size()); left > 0; --left) {
    const auto first = std::min_element(next_s.begin(), next_s.end());
    const auto i = static_cast<size_t>(first - next_s.begin());
    ++dealt[i];
    RIDGE_RETURN_IF_ERROR(price(i));
  }
  return dealt;
}

std::vector<int64_t> DealtEqually(size_t members, int64_t slices) {
  const auto count = static_cast<int64_t>(members);
  std::vector<int64_t> dealt(members, slices / count);
  for (int64_t i = 0; i < slices % count; ++i) ++dealt[static_cast<size_t>(i)];
  return dealt;
}

struct TooLarge {
  std::string device;
  int64_t bytes = 0, limit_bytes = 0;
};

// None where a member has too little memory for a slice.
Result<std::optional<UnequalDeal>> PriceDeal(const Members& members, std::vector<int64_t> dealt,
                                             int64_t samples, TooLarge& too_large) {
  UnequalDeal deal;
  deal.samples = samples;
  for (size_t i = 0; i < members.size(); ++i) {
    RIDGE_ASSIGN_OR_RETURN(LayoutCost cost, members[i].cost(dealt[i], samples));
    if (cost.bytes.all() > members[i].limit_bytes) {
      too_large = {members[i].device, cost.bytes.all(), members[i].limit_bytes};
      return std::optional<UnequalDeal>();
    }
    deal.step_s = std::max(deal.step_s, cost.seconds.all());
    deal.costs.push_back(std::move(cost));
  }
  deal.dealt = std::move(dealt);
  return std::optional(std::move(deal));
}

// Those that divide the batch, from one a member on.
std::vector<int64_t> SliceCounts(size_t members, int64_t batch) {
  std::vector<int64_t> counts;
  for (auto slices = static_cast<int64_t>(members); slices <= std::min(batch, kMostSlices);
       ++slices) {
    if (batch % slices == 0) counts.push_back(slices);
  }
  return counts;
}

Result<UnequalDeal> BestDeal(const Members& members, int64_t batch,
                             const std::vector<int64_t>& counts, const Deal& deal) {
  const auto least = static_cast<int64_t>(members.size());
  std::optional<UnequalDeal> best;
  TooLarge too_large;
  for (const int64_t slices : counts) {
    RIDGE_ASSIGN_OR_RETURN(std::vector<int64_t> dealt, deal(slices, batch / slices));
    RIDGE_ASSIGN_OR_RETURN(std::optional<UnequalDeal> priced,
                           PriceDeal(members, std::move(dealt), batch / slices, too_large));
    if (priced && (!best || priced->step_s < best->step_s)) best = std::move(priced);
  }
  if (best) return *std::move(best);
  if (!too_large.device.empty()) {
    return Status(ErrorCode::kOutOfMemory,
                  fmt::format("plan: a slice needs {} of {}, which has {}. hint: --mesh auto, for "
                              "layouts of equal devices",
                              FormatBytes(too_large.bytes), too_large.device,
                              FormatBytes(too_large.limit_bytes)));
  }
  return InvalidArgument(
      fmt::format("a batch of {} has no equal slices for {} devices. hint: --batch {}", batch,
                  least, least * 8));
}

}  // namespace

int64_t UnequalDeal::slices() const {
  return std::accumulate(dealt.begin(), dealt.end(), int64_t{0});
}

Result<UnequalDeal> DealUnequal(const Members& members, int64_t batch) {
  const Deal deal = [&](int64_t slices, int64_t samples) {
    return DealtGreedily(members, slices, samples);
  };
  return BestDeal(members, batch, SliceCounts(members.size(), batch), deal);
}

Result<UnequalDeal> DealEqual(const Members& members, int64_t batch) {
  const std::vector<int64_t> all = SliceCounts(members.size(), batch);
  std::vector<int64_t> even = all;
  std::erase_if(even,
                [&](int64_t slices) { return slices % static_cast<int64_t>(members.size()) != 0; });
  if (even.empty() && !all.empty()) even.push_back(all.back());
  const Deal deal = [&](int64_t slices, int64_t) {
    return Result<std::vector<int64_t>>(DealtEqually(members.size(), slices));
  };
  return BestDeal(members, batch, even, deal);
}

}  // namespace ridge
