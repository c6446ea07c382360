#include "ridge/plan/workspaces.h"

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
  std::set<std::string> recorded, bounded;
  for (const StepPlan& step : program.steps) {
    for (const PlannedNode& node : step.nodes) {
      if (!node.choice.key.starts_with(kPrefix)) continue;
      const std::string question = node.choice.key.substr(kPrefix.size());
      (FindConvAnswer(program.device, question) ? recorded : bounded).insert(question);
    }
  }
  return {{recorded.begin(), recorded.end()}, {bounded.begin(), bounded.end()}};
}

}  // namespace ridge
