#include "ridge/learn/host_placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <tuple>

#include "ridge/core/glob.h"
#include "ridge/core/split.h"
#include "ridge/graph/name_patterns.h"
#include "ridge/graph/trainable.h"
#include "ridge/graph/uses.h"

namespace ridge {
namespace {

constexpr char kOption[] = "--place ";
constexpr std::string_view kCpu = "=cpu";

// Whether the node looks rows up in input 0.
bool LooksUp(const Node& node, ValueId table) {
  return node.op->name == "gather" && node.inputs[0] == table && node.inputs[1] != table;
}

}  // namespace

Result<std::vector<std::string>> ParsePlace(const std::vector<std::string>& texts) {
  std::vector<std::string> patterns;
  if (IsAutoPlace(texts)) return texts;
  for (const std::string& text : texts) {
    for (const std::string_view part : SplitAt(text, ',')) {
      if (!part.ends_with(kCpu) || part.size() == kCpu.size()) {
        return InvalidArgument(fmt::format(
            "{}is '{}': '{}' is not PATTERN=cpu. hint: --place 'embed.*=cpu', or --place auto",
            kOption, text, part));
      }
      patterns.emplace_back(part.substr(0, part.size() - kCpu.size()));
    }
  }
  return patterns;
}

Result<std::vector<std::string>> PlacedParameters(const std::vector<std::string>& texts,
                                                  const Graph& forward) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<std::string> patterns, ParsePlace(texts));
  const std::vector<std::string> names = ParameterNames(forward);
  for (const std::string& pattern : patterns) {
    const bool found = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return MatchesPattern(name, pattern);
    });
    if (!found) return NoNameMatches(forward.name, kOption, pattern, names, std::string(kCpu));
  }
  std::vector<std::string> placed;
  for (const std::string& name : names) {
    if (MatchesAny(name, patterns)) placed.push_back(name);
  }
  return placed;
}

std::vector<std::string> TablesOf(const Graph& forward) {
  const GraphUses uses(forward);
  std::vector<ValueId> tables;
  std::vector<bool> read_otherwise(forward.values().size());
  for (const ValueId id : forward.ValuesOfKind(ValueKind::kParameter)) {
    const auto readers = uses.ReadersOf(id);
    const auto looks_up = [&](NodeId n) { return LooksUp(forward.node(n), id); };
    if (!uses.OnlyNodesRead(id) || std::none_of(readers.begin(), readers.end(), looks_up)) continue;
    read_otherwise[static_cast<size_t>(id)] =
        !std::all_of(readers.begin(), readers.end(), looks_up);
    tables.push_back(id);
  }
  std::stable_sort(tables.begin(), tables.end(), [&](ValueId a, ValueId b) {
    return std::tuple(read_otherwise[static_cast<size_t>(a)], -forward.type(a).bytes()) <
           std::tuple(read_otherwise[static_cast<size_t>(b)], -forward.type(b).bytes());
  });
  std::vector<std::string> names;
  for (const ValueId id : tables) names.push_back(forward.value(id).name);
  return names;
}

}  // namespace ridge
