// LocalSteps: the steps of which layouts are composed (plan/choose/local_step.h), planned when they
// are asked for and kept.
#pragma once
#include <map>
#include <tuple>

#include "ridge/plan/choose/layout_cost.h"
#include "ridge/train/job/mesh_times.h"

namespace ridge {

class LocalSteps {
 public:
  // Of a model with its forward pass for one batch after the other.  `links.all`: of all devices.
  // `machine` must outlive this.
  LocalSteps(const TrainOptions& options, const MeshLinks& links, const Machine& machine)
      : options_(options), links_(links), machine_(machine) {}

  // Planned with this micro-batch.  Fails as LoadForward and PlanMeshJob do.
  Result<const LocalStep*> Planned(int64_t tensor, bool sequence, int64_t samples);
  // On the line through two that are planned: 1 and 8 samples below 64, 8 and 64 below 512, ...
  Result<LocalStep> At(int64_t tensor, bool sequence, int64_t samples);

  int64_t planned() const { return static_cast<int64_t>(steps_.size()); }

 private:
  const TrainOptions options_;
  const MeshLinks links_;
  const Machine& machine_;
  std::map<std::tuple<int64_t, bool, int64_t>, LocalStep> steps_;
};

}  // namespace ridge
