#include "ridge/plan/memory/offsets.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "ridge/plan/memory/best_fit.h"
#include "ridge/plan/memory/exact_fit.h"

namespace ridge {
namespace {

// Pairs of buffers that are live at the same time.  Up to the first limit, first fit takes
// negligible time; between them it runs only if best fit missed the bound; above the second it
// would take seconds.
constexpr int64_t kFewConflicts = 2'000;
constexpr int64_t kMostConflicts = 1'000'000;
// Rounds times pairs that one starting order may cost.
constexpr int64_t kOrderWork = 1'000'000;
// Buffers times nodes that exhaustive search may cost.
constexpr int64_t kExactWork = 2'000'000;

class FirstFit {
 public:
  explicit FirstFit(const std::vector<Buffer>& buffers)
      : buffers_(buffers), conflicts_(LiveTogether(buffers)) {}

  Placement Place(const std::vector<int>& order) {
    Placement placement;
    placement.offsets.assign(buffers_.size(), -1);
    for (int b : order) {
      placement.offsets[b] = LowestGap(b, placement.offsets);
      placement.peak_bytes =
          std::max(placement.peak_bytes, placement.offsets[b] + buffers_[b].size_bytes);
    }
    return placement;
  }

 private:
  int64_t LowestGap(int b, const std::vector<int64_t>& offsets) {
    taken_.clear();
    for (int other : conflicts_[b]) {
      if (offsets[other] >= 0)
        taken_.emplace_back(offsets[other], offsets[other] + buffers_[other].size_bytes);
    }
    std::sort(taken_.begin(), taken_.end());
    int64_t at = 0;
    for (const auto& [begin, end] : taken_) {
      if (at + buffers_[b].size_bytes <= begin) break;
      at = std::max(at, end);
    }
    return at;
  }

  const std::vector<Buffer>& buffers_;
  const std::vector<std::vector<int>> conflicts_;
  std::vector<std::pair<int64_t, int64_t>> taken_;
};

using Key = std::tuple<int64_t, int64_t, int>;

std::vector<int> OrderBy(size_t count, const auto& key) {
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
  return order;
}

std::vector<std::vector<int>> StartingOrders(const std::vector<Buffer>& buffers) {
  const auto length = [&](int b) { return int64_t{buffers[b].last} - buffers[b].first + 1; };
  const auto size = [&](int b) { return buffers[b].size_bytes; };
  const size_t n = buffers.size();
  return {
      OrderBy(n, [&](int b) { return Key(-size(b), -length(b), b); }),
      OrderBy(n, [&](int b) { return Key(-length(b), -size(b), b); }),
      OrderBy(n, [&](int b) { return Key(-size(b) * length(b), -size(b), b); }),
      OrderBy(n, [&](int b) { return Key(buffers[b].first, -length(b), b); }),
      OrderBy(n, [&](int b) { return Key(-buffers[b].last, -length(b), b); }),
  };
}

// Moves buffers that end above the bound to the front, since they found no gap.
std::vector<int> PromoteTop(const std::vector<Buffer>& buffers, const std::vector<int>& order,
                            const Placement& placement, int64_t bound) {
  std::vector<int> promoted = order;
  std::stable_partition(promoted.begin(), promoted.end(), [&](int b) {
    return placement.offsets[b] + buffers[b].size_bytes > bound;
  });
  return promoted;
}

// Number of pairs of buffers that are live at the same time, counted at each one's first step.
int64_t CountConflicts(const std::vector<Buffer>& buffers) {
  std::vector<int> firsts, lasts;
  for (const Buffer& buffer : buffers) {
    firsts.push_back(buffer.first);
    lasts.push_back(buffer.last);
  }
  std::sort(firsts.begin(), firsts.end());
  std::sort(lasts.begin(), lasts.end());
  int64_t conflicts = 0;
  size_t ended = 0;
  for (size_t begun = 0; begun < firsts.size(); ++begun) {
    while (lasts[ended] < firsts[begun]) ++ended;
    conflicts += static_cast<int64_t>(begun - ended);
  }
  return conflicts;
}

void KeepBetter(Placement placement, Placement& best) {
  if (placement.peak_bytes < best.peak_bytes) best = std::move(placement);
}

// First fit in several orders; each is improved until it reaches the bound.
Placement TryOrders(const std::vector<Buffer>& buffers, int64_t bound, int64_t conflicts) {
  FirstFit first_fit(buffers);
  const int64_t rounds = std::clamp<int64_t>(kOrderWork / (conflicts + 1), 1, 64);
  Placement best;
  best.peak_bytes = INT64_MAX;
  for (std::vector<int> order : StartingOrders(buffers)) {
    for (int64_t round = 0; round < rounds; ++round) {
      Placement placement = first_fit.Place(order);
      std::vector<int> next = PromoteTop(buffers, order, placement, bound);
      KeepBetter(std::move(placement), best);
      if (best.peak_bytes <= bound) return best;
      if (next == order) break;
      order = std::move(next);
    }
  }
  return best;
}

// Exhaustive search between the bound and what is there, by halves.
void Tighten(const std::vector<Buffer>& buffers, int64_t bound, Placement& best) {
  int64_t nodes = kExactWork / (std::ssize(buffers) + 1);
  int64_t least = bound;  // nothing smaller is known to be possible
  int64_t limit = bound;
  while (nodes > 0 && best.peak_bytes - least > bound / 1000) {
    FitResult fit = PlaceWithin(buffers, limit, nodes / 2 + 1);
    nodes -= fit.nodes + 1;
    if (fit.end != FitEnd::kPlaced) least = limit;
    if (fit.end == FitEnd::kPlaced) KeepBetter(std::move(fit.placement), best);
    limit = least + (best.peak_bytes - least) / 2;
  }
}

}  // namespace

std::vector<std::vector<int>> LiveTogether(const std::vector<Buffer>& buffers) {
  std::vector<int> by_first(buffers.size());
  std::iota(by_first.begin(), by_first.end(), 0);
  std::sort(by_first.begin(), by_first.end(), [&](int a, int b) {
    return std::tuple(buffers[a].first, a) < std::tuple(buffers[b].first, b);
  });
  std::vector<std::vector<int>> conflicts(buffers.size());
  std::vector<int> alive;
  for (int b : by_first) {
    std::erase_if(alive, [&](int a) { return buffers[a].last < buffers[b].first; });
    for (int a : alive) {
      conflicts[a].push_back(b);
      conflicts[b].push_back(a);
    }
    if (buffers[b].size_bytes > 0) alive.push_back(b);
  }
  return conflicts;
}

int64_t LiveBound(const std::vector<Buffer>& buffers, int* peak_step) {
  std::map<int, int64_t> change;
  for (const Buffer& buffer : buffers) {
    change[buffer.first] += buffer.size_bytes;
    change[buffer.last + 1] -= buffer.size_bytes;
  }
  int64_t live = 0, most = 0;
  if (peak_step != nullptr) *peak_step = 0;
  for (const auto& [step, bytes] : change) {
    live += bytes;
    if (live > most) {
      most = live;
      if (peak_step != nullptr) *peak_step = step;
    }
  }
  return most;
}

Placement PlaceBuffers(const std::vector<Buffer>& buffers) {
  const int64_t bound = LiveBound(buffers);
  const int64_t conflicts = CountConflicts(buffers);
  Placement best;
  best.peak_bytes = INT64_MAX;
  if (conflicts > kFewConflicts) {
    for (const BestFitBy by : {BestFitBy::kLength, BestFitBy::kArea, BestFitBy::kSize}) {
      KeepBetter(PlaceBestFit(buffers, by), best);
      // Of many buffers the last thousandth is not worth two more placements.
      const int64_t enough = conflicts > kMostConflicts ? bound / 1000 : 0;
      if (best.peak_bytes <= bound + enough) return best;
    }
  }
  if (conflicts > kMostConflicts) return best;
  KeepBetter(TryOrders(buffers, bound, conflicts), best);
  Tighten(buffers, bound, best);
  return best;
}

}  // namespace ridge
