// The planner: Graphs, KernelQuery, DeviceProfile -> Program.
//
// One loop over each graph picks kernels and layouts (reorders between layouts become nodes, shared
// by all readers), then values get live ranges and offsets.  Pure and deterministic: equal input,
// equal Program.  plan/ runs no kernel.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/plan/memory/recompute.h"
#include "ridge/plan/program.h"
#include "ridge/plan/side_by_side.h"

namespace ridge {

struct PlanOptions {
  bool in_place = true;  // --passes=-inplace
  bool layout = true;    // --passes=-layout: row-major only
  bool double_buffer_inputs = true;
  // Seconds of kernels by KernelChoice::key, measured on request: they choose between kernels.
  // nullptr: the nominal device chooses.  Not owned.
  const std::map<std::string, double>* kernel_s = nullptr;
  SideBySide side_by_side = {};  // --inter-op
};

struct NamedGraph {
  std::string name;  // of the StepPlan
  Graph graph;       // of one slice

  // The batch runs in so many slices.  Then: inputs that hold a slice's part; and states that are
  // sums over the slices, each with an update that adds to it.  They begin at 0 in every step; what
  // reads them or their new contents runs once, with the last slice.
  int64_t slices = 1;
  std::vector<std::string> sliced_inputs = {};
  std::vector<std::string> slice_sums = {};

  // Which cheap values that backward reads again are computed again.  Whoever runs the passes does
  // it; the planner takes the graph as it is.
  RecomputeLimits recompute = {};
};

// Variables of the same name are one persistent value; their types and initial values must agree.
// Fails with kUnsupported when no kernel can run a node: the message has the refusals.
Result<Program> PlanProgram(const std::string& model, const std::vector<NamedGraph>& graphs,
                            KernelQuery& kernels, const DeviceProfile& profile,
                            const PlanOptions& options);

// Seconds of every node and step by the profile (again, when the profile has learned more).
void EstimateTimes(const DeviceProfile& profile, Program& program);

}  // namespace ridge
