#include "ridge/plan/workspaces.h"

#include <set>

namespace ridge {

WorkspaceSources WorkspaceSourcesOf(const Program& program) {
  std::set<std::string> recorded, bounded;
  for (const StepPlan& step : program.steps) {
    for (const PlannedNode& node : step.nodes) {
      const std::optional<WorkspaceQuestion>& question = node.choice.question;
      if (question) (question->answered ? recorded : bounded).insert(question->text);
    }
  }
  return {{recorded.begin(), recorded.end()}, {bounded.begin(), bounded.end()}};
}

}  // namespace ridge
