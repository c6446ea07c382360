#include "ridge/graph/name_patterns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "ridge/core/glob.h"

namespace ridge {
namespace {

constexpr size_t kMostNearest = 3;

// The fewest edits that turn `piece` into some part of `name`: Sellers' algorithm.
size_t EditsToPartOf(const std::string& name, const std::string& piece) {
  std::vector<size_t> before(name.size() + 1, 0), now(name.size() + 1);
  for (size_t i = 1; i <= piece.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= name.size(); ++j) {
      const size_t changed = before[j - 1] + (piece[i - 1] == name[j - 1] ? 0 : 1);
      now[j] = std::min({changed, before[j] + 1, now[j - 1] + 1});
    }
    std::swap(before, now);
  }
  return *std::min_element(before.begin(), before.end());
}

std::vector<std::string> NearestNames(const std::string& pattern,
                                      const std::vector<std::string>& names) {
  std::string piece = pattern;
  std::erase_if(piece, [](char c) { return c == '*' || c == '?'; });
  std::vector<size_t> edits, order(names.size());
  for (const std::string& name : names) edits.push_back(EditsToPartOf(name, piece));
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return edits[a] < edits[b]; });
  std::vector<std::string> nearest;
  for (size_t i = 0; i < std::min(kMostNearest, order.size()); ++i)
    nearest.push_back(names[order[i]]);
  return nearest;
}

// "conv1.weight" -> "conv1.*".
std::string ModulePattern(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(0, dot) + ".*";
}

}  // namespace

bool MatchesAny(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return MatchesPattern(name, pattern); });
}

Status NoNameMatches(const std::string& graph, const std::string& option,
                     const std::string& pattern, const std::vector<std::string>& names,
                     const std::string& value) {
  const std::string start = fmt::format("{}: {}'{}' matches no parameter", graph, option, pattern);
  if (names.empty()) return InvalidArgument(start + ": there is none");
  const std::vector<std::string> nearest = NearestNames(pattern, names);
  return InvalidArgument(fmt::format("{}; the nearest {} {}. hint: {}'{}{}'", start,
                                     nearest.size() == 1 ? "is" : "are", fmt::join(nearest, ", "),
                                     option, ModulePattern(nearest[0]), value));
}

}  // namespace ridge
