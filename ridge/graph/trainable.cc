#include "ridge/graph/trainable.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/core/glob.h"
#include "ridge/graph/name_patterns.h"

namespace ridge {
namespace {

Status CheckMatch(const Graph& graph, const char* option,
                  const std::vector<std::string>& patterns) {
  const std::vector<std::string> names = ParameterNames(graph);
  for (const std::string& pattern : patterns) {
    const auto matches = [&](const std::string& name) { return MatchesPattern(name, pattern); };
    if (std::any_of(names.begin(), names.end(), matches)) continue;
    return NoNameMatches(graph.name, option, pattern, names);
  }
  return Status();
}

}  // namespace

std::vector<std::string> ParameterNames(const Graph& graph) {
  std::vector<std::string> names;
  for (ValueId id : graph.ValuesOfKind(ValueKind::kParameter))
    names.push_back(graph.value(id).name);
  return names;
}

Status ChooseTrainable(const TrainablePatterns& patterns, Graph& graph) {
  RIDGE_RETURN_IF_ERROR(CheckMatch(graph, "--freeze ", patterns.freeze));
  RIDGE_RETURN_IF_ERROR(CheckMatch(graph, "--trainable ", patterns.trainable));
  bool any = false;
  for (ValueId id : graph.ValuesOfKind(ValueKind::kParameter)) {
    ValueInfo& info = graph.mutable_value(id);
    if (MatchesAny(info.name, patterns.freeze)) info.trainable = false;
    if (MatchesAny(info.name, patterns.trainable)) info.trainable = true;
    any = any || info.trainable;
  }
  if (any || patterns.freeze.empty()) return Status();
  return InvalidArgument(fmt::format(
      "{}: --freeze leaves no parameter to train. hint: --trainable '{}' trains the last one",
      graph.name, ParameterNames(graph).back()));
}

std::vector<std::string> FrozenParameters(const Graph& graph) {
  std::vector<std::string> names;
  for (ValueId id : graph.ValuesOfKind(ValueKind::kParameter)) {
    if (!graph.value(id).trainable) names.push_back(graph.value(id).name);
  }
  return names;
}

}  // namespace ridge
