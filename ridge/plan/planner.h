// The planner: Graphs, KernelQuery, DeviceProfile -> Program.
//
// One loop over each graph picks kernels and layouts (reorders between layouts become nodes, shared
// by all readers); then values get live ranges and offsets.  Pure and deterministic: equal input,
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
  // Measured seconds by KernelChoice::key, which choose between kernels.  nullptr: the nominal
  // device chooses.  Not owned.
  const std::map<std::string, double>* kernel_s = nullptr;
  SideBySide side_by_side = {};  // --inter-op
};

struct NamedGraph {
  std::string name;  // of the StepPlan
  Graph graph;       // of one slice

  // A step runs the batch in `slices` equal parts.  `sliced_inputs` hold one part; `slice_sums` are
  // states, each with an update that adds to it.  The sums start at 0 in every step; other nodes
  // that read a sum, old or new, run only in the last slice.
  int64_t slices = 1;
  std::vector<std::string> sliced_inputs = {};
  std::vector<std::string> slice_sums = {};

  // Which cheap values backward recomputes.  The caller applies it with the passes; PlanProgram
  // ignores it.
  RecomputeLimits recompute = {};
};

// Variables of the same name are one persistent value; their types and initial values must agree.
// Fails with kUnsupported when no kernel can run a node: the message lists the refusals.
Result<Program> PlanProgram(const std::string& model, const std::vector<NamedGraph>& graphs,
                            KernelQuery& kernels, const DeviceProfile& profile,
                            const PlanOptions& options);

// Sets the seconds of every node and step by the profile; call it again when the profile changes.
void EstimateTimes(const DeviceProfile& profile, Program& program);

}  // namespace ridge
