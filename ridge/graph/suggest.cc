// Optimal string alignment distance by dynamic programming, over three rows.
#include "ridge/graph/suggest.h"

#include <algorithm>
#include <cstdlib>

namespace ridge {
namespace {

constexpr size_t kLongestName = 64;  // the table is quadratic, and longer names are not typed

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::string ClosestName(std::string_view name, const std::vector<std::string>& candidates) {
  std::string best;
  if (name.empty() || name.size() > kLongestName) return best;
  size_t best_distance = std::max<size_t>(name.size() / 3, 1) + 1;  // a third of it may be wrong
  for (const std::string& candidate : candidates) {
    const size_t difference = candidate.size() > name.size() ? candidate.size() - name.size()
                                                             : name.size() - candidate.size();
    if (difference >= best_distance) continue;
    const size_t distance = EditDistance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string DidYouMean(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string closest = ClosestName(name, candidates);
  return closest.empty() ? "" : "; did you mean '" + closest + "'?";
}

}  // namespace ridge
