#include "ridge/plan/workspaces.h"

#include <set>
#include <string_view>

#include "ridge/plan/hardware/conv_workspaces.h"

namespace ridge {

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
