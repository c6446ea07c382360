#include "ridge/plan/workspaces.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "ridge/plan/hardware/conv_workspaces.h"
#include "ridge/plan/memory/phases.h"

namespace ridge {

std::string QuestionOf(const PlannedNode& node) {
  constexpr std::string_view kPrefix = kCudnnKey;
  const std::string& key = node.choice.key;
  return key.starts_with(kPrefix) ? key.substr(kPrefix.size()) : "";
}

WorkspaceSources WorkspaceSourcesOf(const Program& program) {
  std::map<std::string, const KernelChoice*> choices;  // by question
  for (const StepPlan& step : program.steps) {
    for (const PlannedNode& node : step.nodes) {
      if (std::string question = QuestionOf(node); !question.empty())
        choices.emplace(std::move(question), &node.choice);
    }
  }
  WorkspaceSources sources;
  std::set<std::string> libraries;
  for (const auto& [question, choice] : choices) {
    const std::optional<LibraryAnswer>& answer = choice->answer;
    if (!answer) {
      (choice->is_bound ? sources.bounded : sources.by_formula).push_back(question);
      continue;
    }
    (answer->is_asked ? sources.asked : sources.recorded).push_back(question);
    libraries.insert(answer->library + (answer->is_asked ? " (asked)" : " (recorded)"));
    if (choice->workspace_bytes != answer->first_bytes) ++sources.other_engines;
    sources.largest_bytes = std::max(sources.largest_bytes, choice->workspace_bytes);
    sources.largest_first_bytes = std::max(sources.largest_first_bytes, answer->first_bytes);
  }
  sources.libraries.assign(libraries.rbegin(), libraries.rend());  // recorded, then asked
  return sources;
}

int64_t DeterministicBytes(const Program& program) {
  const int64_t chosen =
      LargestLive(program, [](const KernelChoice& choice) { return choice.workspace_bytes; });
  const int64_t first = LargestLive(program, [](const KernelChoice& choice) {
    return choice.answer ? choice.answer->first_bytes : choice.workspace_bytes;
  });
  return chosen - first;
}

}  // namespace ridge
