#include "ridge/train/job/local_steps.h"

#include "ridge/plan/mesh_nodes.h"
#include "ridge/train/load/forward.h"

namespace ridge {
namespace {

constexpr int64_t kNextPlanned = 8;  // times the samples of the one before

Result<LocalStep> PlanLocalStep(const TrainOptions& given, const MeshLinks& links, int64_t tensor,
                                bool sequence, int64_t samples, const Machine& machine) {
  TrainOptions options = given;
  options.batch = samples;
  options.accumulate = 1;
  options.recompute = "off";
  options.loss_chunks = "1";
  RIDGE_ASSIGN_OR_RETURN(const Forward forward, LoadForward(options));
  const Mesh mesh = {{{tensor > 1 ? kTensorAxis : kDataAxis, tensor}}};
  RIDGE_ASSIGN_OR_RETURN(const MeshJob job, PlanMeshJob(options, forward.graph, forward.facts, mesh,
                                                        {.sequence = sequence}, machine));
  const DeviceGroup group = StridedGroup(links.all, 1, tensor);
  Status status;
  LocalStep step =
      LocalStepOf(job.program, ProfiledRuntimeBytes(machine.measured().facts(), job.program),
                  machine.software.eager, [&](const PlannedNode& node) {
                    if (!IsMeshCollective(node)) return -1.0;
                    const Result<double> seconds =
                        CollectiveNodeSeconds(node, CollectiveBytes(node), group, links.wire_share);
                    if (!seconds.ok()) status = seconds.status();
                    return seconds.ok() ? *seconds : 0;
                  });
  RIDGE_RETURN_IF_ERROR(status);
  return step;
}

}  // namespace

Result<const LocalStep*> LocalSteps::Planned(int64_t tensor, bool sequence, int64_t samples) {
  const auto key = std::tuple(tensor, sequence, samples);
  if (const auto known = steps_.find(key); known != steps_.end()) return &known->second;
  RIDGE_ASSIGN_OR_RETURN(LocalStep step,
                         PlanLocalStep(options_, links_, tensor, sequence, samples, machine_));
  return &steps_.emplace(key, std::move(step)).first->second;
}

Result<LocalStep> LocalSteps::At(int64_t tensor, bool sequence, int64_t samples) {
  int64_t below = 1;
  while (below * kNextPlanned * kNextPlanned <= samples) below *= kNextPlanned;
  RIDGE_ASSIGN_OR_RETURN(const LocalStep* first, Planned(tensor, sequence, below));
  if (below == samples) return *first;
  RIDGE_ASSIGN_OR_RETURN(const LocalStep* second, Planned(tensor, sequence, below * kNextPlanned));
  if (first->blocks.size() == second->blocks.size()) {
    const double share =
        static_cast<double>(samples - below) / static_cast<double>(below * kNextPlanned - below);
    return Between(*first, *second, share);
  }
  RIDGE_ASSIGN_OR_RETURN(const LocalStep* own, Planned(tensor, sequence, samples));
  return *own;
}

}  // namespace ridge
