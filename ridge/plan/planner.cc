// Where we come from: the optimized graphs of a training job (learn/training_graph.cc).
// What is known here: the backend's offers and cost models; nothing is run.
// Where it goes next: runtime/executor.cc maps the arena and walks the StepPlans.
#include "ridge/plan/planner.h"

#include <algorithm>

#include "ridge/core/rounding.h"
#include "ridge/plan/cost/times.h"
#include "ridge/plan/lower.h"
#include "ridge/plan/memory/check_placement.h"
#include "ridge/plan/memory/placement.h"
#include "ridge/plan/packed.h"
#include "ridge/plan/slices.h"

namespace ridge {
namespace {

// Bytes of scratch to copy a variable from another layout to row-major and back, outside the steps,
// with the workspace of the copying kernel.
int64_t StagingBytes(KernelQuery& kernels, const std::vector<PersistentValue>& persistent) {
  int64_t bytes = 0;
  for (const PersistentValue& value : persistent) {
    if (value.layout == kRowMajor) continue;
    const KernelChoice out = kernels.Reorder(value.type, value.layout, kRowMajor);
    const KernelChoice in = kernels.Reorder(value.type, kRowMajor, value.layout);
    bytes = std::max(
        bytes, StagingWorkspaceOffset(value) + std::max(out.workspace_bytes, in.workspace_bytes));
  }
  return bytes;
}

// Slot 1 of an input follows its slot 0 as a separate value (see PersistentRegion).
void PlaceAll(KernelQuery& kernels, Program& program) {
  program.persistent_bytes = PlacePersistent(program.persistent);
  int64_t scratch = StagingBytes(kernels, program.persistent), bound = scratch;
  for (StepPlan& step : program.steps) {
    PlaceValues(program.persistent, program.persistent_bytes, step);
    scratch = std::max(scratch, step.scratch_bytes);
    bound = std::max(bound, step.bound_bytes);
  }
  const int64_t bytes = program.persistent_bytes + scratch;
  program.arena_bytes = RoundUp(bytes, kPageBytes);
  program.bound_bytes = program.persistent_bytes + bound;
}

}  // namespace

Result<Program> PlanProgram(const std::string& model, const std::vector<NamedGraph>& graphs,
                            KernelQuery& kernels, const CostModel& measured,
                            const PlanOptions& options) {
  Program program;
  program.model = model;
  program.device = measured.facts().name;
  PersistentRegion persistent;
  if (options.layout) persistent.homes = OptimizedVariables(graphs);
  for (const NamedGraph& named : graphs) {
    if (const auto unbound = UnboundDims(named.graph); !unbound.empty()) {
      return Status(ErrorCode::kInvalidModel, named.graph.name + ": dimension '" + unbound[0] +
                                                  "' is not bound. hint: --batch or --dim " +
                                                  unbound[0] + "=N");
    }
    RIDGE_ASSIGN_OR_RETURN(StepPlan step, LowerGraph(named, kernels, options, persistent));
    program.steps.push_back(std::move(step));
  }
  program.persistent = std::move(persistent.values);
  if (options.layout) KeepPacked(kernels, program.persistent, program.steps);
  for (StepPlan& step : program.steps) {
    FormSections(kernels, options.side_by_side, step);
    if (options.in_place) ShareInPlace(step);
    WriteFirstSlice(step);
  }
  PlaceAll(kernels, program);
  RIDGE_RETURN_IF_ERROR(CheckPlacement(program));
  EstimateTimes(measured, program);
  return program;
}

}  // namespace ridge
