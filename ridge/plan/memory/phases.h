// Phases: how much of a step's memory is live while it runs forward, backward and updates, where
// the most of it is, and which tensors these are.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ridge/plan/program.h"

namespace ridge {

// A part of a step: "forward", "loss" from an operator of losses on, "backward" from the first
// gradient on with what is recomputed for it, "optimizer" for the updates, which run between
// gradients; "evaluation"; and "checkpoint", between steps, where each variable is copied out.
struct PhasePeak {
  std::string phase;
  std::string step;   // "train"; empty between steps
  std::string node;   // at which the most is live; empty between steps
  int64_t bytes = 0;  // live then, variables and workspace included
  // Of scratch tensors and the workspace that are live there, largest first.
  std::vector<std::pair<std::string, int64_t>> largest;
};

// "train conv1", "between steps".
std::string PlaceOf(const PhasePeak& peak);

// In the order in which they run; phases without nodes are left out.
std::vector<PhasePeak> PhasePeaks(const Program& program);

// What is live while a node runs.
struct NodeMemory {
  std::string phase;
  int64_t bytes = 0;  // as PhasePeak::bytes
  std::vector<std::pair<std::string, int64_t>> largest;
};

// By node of one of the program's steps.
std::vector<NodeMemory> MemoryByNode(const Program& program, const StepPlan& step);

// The largest sum of live values, with these bytes as the workspaces of kernels.
int64_t LargestLive(const Program& program,
                    const std::function<int64_t(const KernelChoice&)>& workspace_of);

}  // namespace ridge
