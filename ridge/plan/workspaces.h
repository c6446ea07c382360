// Where a plan's workspaces on a GPU of NVIDIA's that is not here come from.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ridge/plan/program.h"

namespace ridge {

// What cuDNN is asked about the program's kernels, each question once, sorted.
struct WorkspaceSources {
  std::vector<std::string> recorded;  // its answer is in the plan
  std::vector<std::string> bounded;   // an upper bound is
  // Recorded ones whose first deterministic engine takes other bytes than cuDNN's first choice, and
  // the largest workspace of all recorded ones by each of the two.
  int64_t other_engines = 0;
  int64_t largest_bytes = 0, largest_first_bytes = 0;

  bool empty() const { return recorded.empty() && bounded.empty(); }
};

// Empty for other devices.
WorkspaceSources WorkspaceSourcesOf(const Program& program);

// Whether the library answered what this node of a plan for `device` takes.
bool IsRecorded(const std::string& device, const PlannedNode& node);

}  // namespace ridge
