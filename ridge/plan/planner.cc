// Where we come from: the optimized graphs of a training job (learn/training_graph.cc).
// What is known here: the backend's kernel candidates and cost models; nothing is run.
// Where it goes next: runtime/executor.cc maps the arena and walks the StepPlans.
#include "ridge/plan/planner.h"

#include <algorithm>

#include "ridge/core/rounding.h"
#include "ridge/plan/cost/host_link.h"
#include "ridge/plan/cost/times.h"
#include "ridge/plan/lower.h"
#include "ridge/plan/memory/check_placement.h"
#include "ridge/plan/memory/placement.h"
#include "ridge/plan/slices.h"
#include "ridge/plan/tree_sums.h"
#include "ridge/plan/weight_layout.h"

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
    bytes = std::max(bytes, StagingWorkspaceOffset(value, kernels.memory()) +
                                std::max(out.workspace_bytes, in.workspace_bytes));
  }
  return bytes;
}

// Slot 1 of an input follows its slot 0 as a separate value (see PersistentRegion).
void PlaceAll(KernelQuery& kernels, Program& program) {
  PlacePersistent(program);  // behind it the offsets of steps are known
  program.copy_bytes = StagingBytes(kernels, program.persistent);
  int64_t scratch = program.copy_bytes, bound = scratch;
  for (StepPlan& step : program.steps) {
    PlaceValues(program, step);
    scratch = std::max(scratch, step.scratch_bytes);
    bound = std::max(bound, step.bound_bytes);
  }
  const int64_t bytes = program.persistent_bytes + scratch;
  program.arena_bytes = RoundUp(bytes, program.memory.page_bytes);
  program.bound_bytes = program.persistent_bytes + bound;
}

// Steps counted, scales and biases: many blocks of many kernels read them, and they are few.
constexpr int64_t kLeastHostBytes = 4096;

// Kernels that reach the host's memory have times of their own.
void MarkOnHost(const PlanOptions& options, Program& program) {
  for (PersistentValue& value : program.persistent) {
    const auto& purposes = options.on_host;
    if (value.size_bytes >= kLeastHostBytes &&
        std::find(purposes.begin(), purposes.end(), value.purpose) != purposes.end())
      value.on_host = true;
  }
  program.host_link_bytes_per_s = options.host_link_bytes_per_s;
  if (options.host_link_bytes_per_s <= 0) return;
  for (StepPlan& step : program.steps) {
    for (PlannedNode& node : step.nodes) {
      if (LinkBytesOf(program, step, node).any()) node.choice.key += " on the host";
    }
  }
}

Status CheckBound(const Graph& graph) {
  const auto unbound = UnboundDims(graph);
  if (unbound.empty()) return Status();
  return Status(ErrorCode::kInvalidModel, graph.name + ": dimension '" + unbound[0] +
                                              "' is not bound. hint: --batch or --dim " +
                                              unbound[0] + "=N");
}

// The kernels of the walk that made `step`, which loses them, but for those that were voted.
DecidedKernels DecidedBy(const NamedGraph& named, const std::vector<NodeId>& sources,
                         const std::map<int, KernelChoice>& kernels, StepPlan& step) {
  DecidedKernels decided(named.graph.nodes().size());
  for (size_t n = 0; n < sources.size(); ++n) {
    if (sources[n] == kNoNode) continue;
    PlannedNode& node = step.nodes[n];
    const auto voted = kernels.find(static_cast<int>(n));
    decided[static_cast<size_t>(sources[n])] = {
        voted == kernels.end() ? std::move(node.choice) : voted->second, std::move(node.refusals)};
  }
  return decided;
}

// Walks the graphs twice: the second time the layouts of the weights are known.
Status LowerGraphs(const std::vector<NamedGraph>& graphs, KernelQuery& kernels,
                   const PlanOptions& options, Program& program) {
  PersistentRegion persistent;
  persistent.copies = options.copies;
  persistent.alignment_bytes = kernels.memory().alignment_bytes;
  if (options.layout) persistent.first_reads = OptimizedVariables(graphs);
  const HostNodes host = FindHostNodes(graphs, options.host_parameters);
  for (const std::string& variable : host.variables) persistent.first_reads.erase(variable);
  std::vector<std::vector<NodeId>> sources;
  for (size_t s = 0; s < graphs.size(); ++s) {
    RIDGE_ASSIGN_OR_RETURN(LoweredGraph lowered, LowerGraph(graphs[s], kernels, options, persistent,
                                                            {host.variables, host.nodes[s]}));
    program.steps.push_back(std::move(lowered.step));
    sources.push_back(std::move(lowered.sources));
  }
  program.persistent = std::move(persistent.values);
  if (!options.layout) return Status();
  const WeightLayouts voted = VoteWeightLayouts(kernels, program.persistent, program.steps);
  if (voted.variables.empty()) return Status();
  PersistentRegion kept;
  kept.layouts = voted.variables;
  kept.copies = persistent.copies;
  kept.alignment_bytes = persistent.alignment_bytes;
  for (size_t s = 0; s < graphs.size(); ++s) {
    const DecidedKernels decided =
        DecidedBy(graphs[s], sources[s], voted.kernels[s], program.steps[s]);
    RIDGE_ASSIGN_OR_RETURN(
        LoweredGraph lowered,
        LowerGraph(graphs[s], kernels, options, kept, {host.variables, host.nodes[s], &decided}));
    program.steps[s] = std::move(lowered.step);
  }
  program.persistent = std::move(kept.values);
  return Status();
}

}  // namespace

Result<Program> PlanProgram(const std::string& model, const std::vector<NamedGraph>& graphs,
                            KernelQuery& kernels, const CostModel& measured,
                            const PlanOptions& options) {
  Program program;
  program.model = model;
  program.device = measured.facts().name;
  program.memory = kernels.memory();
  for (const NamedGraph& named : graphs) RIDGE_RETURN_IF_ERROR(CheckBound(named.graph));
  RIDGE_RETURN_IF_ERROR(LowerGraphs(graphs, kernels, options, program));
  for (StepPlan& step : program.steps) {
    FormParallelRegions(kernels, options.inter_op, step);
    if (options.in_place) ShareInPlace(program.memory, step);
    PeelFirstSlice(step);
  }
  FormTreeSums(program, options.overlap_exchange);
  MarkOnHost(options, program);
  PlaceAll(kernels, program);
  RIDGE_RETURN_IF_ERROR(CheckPlacement(program));
  EstimateTimes(measured, program);
  return program;
}

}  // namespace ridge
