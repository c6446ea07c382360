#include "ridge/plan/workspaces.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "ridge/plan/hardware/conv_workspaces.h"

namespace ridge {

bool IsRecorded(const std::string& device, const PlannedNode& node) {
  constexpr std::string_view kPrefix = kCudnnKey;
  return node.choice.key.starts_with(kPrefix) &&
         FindConvAnswer(device, node.choice.key.substr(kPrefix.size())).has_value();
}

WorkspaceSources WorkspaceSourcesOf(const Program& program) {
  constexpr std::string_view kPrefix = kCudnnKey;
  std::map<std::string, ConvAnswer> recorded;
  std::set<std::string> bounded;
  for (const StepPlan& step : program.steps) {
    for (const PlannedNode& node : step.nodes) {
      if (!node.choice.key.starts_with(kPrefix)) continue;
      const std::string question = node.choice.key.substr(kPrefix.size());
      if (const auto answer = FindConvAnswer(program.device, question)) {
        recorded.emplace(question, *answer);
      } else {
        bounded.insert(question);
      }
    }
  }
  WorkspaceSources sources = {{}, {bounded.begin(), bounded.end()}};
  for (const auto& [question, answer] : recorded) {
    sources.recorded.push_back(question);
    if (answer.bytes != answer.first_bytes) ++sources.other_engines;
    sources.largest_bytes = std::max(sources.largest_bytes, answer.bytes);
    sources.largest_first_bytes = std::max(sources.largest_first_bytes, answer.first_bytes);
  }
  return sources;
}

}  // namespace ridge
