// PlanVerb: the flags of `ridge plan`, and what its reports share of planning for a device.
#pragma once
#include <optional>
#include <string>

#include "ridge/cli/machine.h"
#include "ridge/cli/plan_mesh.h"
#include "ridge/cli/planning.h"
#include "ridge/cli/train_flags.h"

namespace ridge::cli {

// Of --why: what more devices would bring, and what their sums of gradients take.
inline constexpr const char* kWhyDevices = "devices";
inline constexpr const char* kWhySums = "sums";

struct PlanVerb {
  TrainFlags train;
  OutputFlags output;
  std::optional<std::string> on, foreign, why, html, scaling;
  MeshFlags mesh;
  std::optional<std::string> pipeline;
  bool json = false, history = false, markdown = false;
};

// A run planned for one device.
struct DevicePlan {
  OpenedMachine opened;
  PlannedRun run;
};

// A file of `ridge bench device --record`.
bool IsRecord(const std::string& device);

// `--on cpu` and no --on are this machine, every other device one that is not here.  As the first
// of so many ranks.  Fails as OpenMachine, OpenRecordedMachine and OpenPlannedMachine do.
Result<OpenedMachine> OpenFor(const PlanVerb& verb, const TrainOptions& options, int64_t devices);

// One of so many devices, with a batch of all of them.  Fails as OpenFor and PlanRun.
Result<DevicePlan> PlanOn(const std::string& device, const PlanVerb& verb, int64_t devices,
                          int64_t batch);

PlanSummary Summary(const DevicePlan& plan);
// With what earlier runs here say of it.
PlanSummary SummaryByHistory(const DevicePlan& plan, const PlanVerb& verb);

}  // namespace ridge::cli
