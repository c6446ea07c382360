// Where a plan's workspaces on a GPU of NVIDIA's that is not here come from.
#pragma once
#include <string>
#include <vector>

#include "ridge/plan/program.h"

namespace ridge {

// What cuDNN is asked about the program's kernels, each question once, sorted.
struct WorkspaceSources {
  std::vector<std::string> recorded;  // its answer is in the plan
  std::vector<std::string> bounded;   // an upper bound is

  bool empty() const { return recorded.empty() && bounded.empty(); }
};

// Empty for other devices.
WorkspaceSources WorkspaceSourcesOf(const Program& program);

// Whether the library answered what this node of a plan for `device` takes.
bool IsRecorded(const std::string& device, const PlannedNode& node);

}  // namespace ridge
