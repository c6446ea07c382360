#include "ridge/train/job/mesh_job.h"

#include <fmt/format.h>

#include "ridge/learn/optimizers/rates.h"
#include "ridge/lower/pipeline.h"
#include "ridge/plan/cost/times.h"
#include "ridge/plan/mesh_nodes.h"
#include "ridge/train/job/job.h"

namespace ridge {

Status CheckOneSlice(const TrainOptions& options, const ForwardInfo& facts) {
  const auto refused = [](const std::string& what) {
    return InvalidArgument(what + " of a plan on a mesh. hint: leave it out");
  };
  if (options.slices != "auto" && options.slices != "1")
    return refused(fmt::format("--slices is '{}'; there is one slice", options.slices));
  if (options.recompute != "auto" && options.recompute != "off")
    return refused(fmt::format("--recompute is '{}'; nothing is recomputed", options.recompute));
  if (options.loss_chunks != "auto" && options.loss_chunks != "1")
    return refused(fmt::format("--loss-chunks is '{}'; there is one chunk", options.loss_chunks));
  if (facts.has_optimizer)
    return refused("the model brings its own training step; gradients are those of ridge");
  return Status();
}

Result<std::vector<NamedGraph>> MeshTrainingGraphs(const TrainOptions& options,
                                                   const Graph& forward, const ForwardInfo& facts,
                                                   const Machine& machine) {
  RIDGE_RETURN_IF_ERROR(CheckOneSlice(options, facts));
  RIDGE_ASSIGN_OR_RETURN(const PassSelection passes, ParsePassSpec(options.passes));
  RIDGE_ASSIGN_OR_RETURN(const Graph simple,
                         RunPasses(forward, ForwardPasses(passes), machine.query().rules()));
  TrainingGraphOptions training;
  training.optimizer = options.optimizer;
  RIDGE_ASSIGN_OR_RETURN(training.rates, ParseRateFactors(options.lr_for));
  training.average_decay = options.ema;
  training.clip_norm = options.clip_norm;
  training.accumulate = options.accumulate;
  return BuildTrainingGraphs(simple, training);
}

namespace {

// Seconds of the nodes that run on the device alone.
double KernelSeconds(const StepPlan& step) {
  const std::vector<double> node_s = PlannedNodeSeconds(step);
  double seconds = 0;
  for (size_t n = 0; n < node_s.size(); ++n) {
    if (!IsMeshNode(step.nodes[n])) seconds += node_s[n];
  }
  return seconds;
}

}  // namespace

Result<MeshJob> PlanMeshJob(const TrainOptions& options, const Graph& forward,
                            const ForwardInfo& facts, const Mesh& mesh, const Sharding& sharding,
                            const Machine& machine) {
  MeshJob job;
  job.mesh = mesh;
  job.sharding = sharding;
  RIDGE_ASSIGN_OR_RETURN(std::vector<NamedGraph> graphs,
                         MeshTrainingGraphs(options, forward, facts, machine));
  RIDGE_ASSIGN_OR_RETURN(MeshGraphs parts, PartitionGraphs(std::move(graphs), mesh, sharding));
  job.pairs = parts.pairs;
  job.state = parts.state;
  job.one_device = parts.one_device;
  job.steps = std::move(parts.steps);
  MeshKernels kernels(machine.query());
  Machine rank = machine;
  rank.backend = nullptr;
  rank.planned = &kernels;
  RIDGE_ASSIGN_OR_RETURN(const DType operands, ProductOperands(options.precision, machine));
  RIDGE_ASSIGN_OR_RETURN(
      job.program, PlanGraphs(options.model, std::move(parts.graphs), options.passes, operands,
                              rank, OffloadOf(options.offload)));
  PlaceOnMesh({mesh, 0}, parts.variables, job.program);
  job.memory =
      EstimateMemory(job.program, ProfiledRuntimeBytes(machine.measured().facts(), job.program),
                     /*data_bytes=*/0);
  RIDGE_ASSIGN_OR_RETURN(job.offload, PlanOffloadOf(options, job.program, machine));
  if (job.offload) job.memory = WithWindows(std::move(job.memory), *job.offload);
  for (const StepPlan& step : job.program.steps)
    job.kernel_s +=
        KernelSeconds(step) * static_cast<double>(step.name == "micro" ? options.accumulate : 1);
  return job;
}

}  // namespace ridge
