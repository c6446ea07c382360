// `ridge plan MODEL --mesh p=4 --accumulate 8`: the stages of a pipeline and their schedule.
#pragma once
#include <optional>
#include <string>

#include "ridge/partition/mesh.h"
#include "ridge/report/terminal.h"
#include "ridge/train/options/machine.h"
#include "ridge/train/options/options.h"

namespace ridge::cli {

// Plans and prints.  `pipeline`: the schedule, 1f1b where there is none.  Fails as PlanPipelineJob
// does, and with kOutOfMemory where a device needs more than --fit allows.
Status PrintPipelinePlan(const TrainOptions& options, const Mesh& mesh,
                         const std::optional<std::string>& pipeline, const Machine& machine,
                         bool json, const Terminal& terminal);

}  // namespace ridge::cli
