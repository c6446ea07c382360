// Where a plan's workspaces on a device that is not here come from.
#pragma once
#include <string>
#include <vector>

#include "ridge/plan/program.h"

namespace ridge {

// Questions of the program's kernels (KernelChoice::question), each once, sorted.
struct WorkspaceSources {
  std::vector<std::string> recorded;  // the library's answer is in the plan
  std::vector<std::string> bounded;   // an upper bound is

  bool empty() const { return recorded.empty() && bounded.empty(); }
};

WorkspaceSources WorkspaceSourcesOf(const Program& program);

}  // namespace ridge
