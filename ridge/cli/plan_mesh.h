// `ridge plan MODEL --mesh d=2,t=4`: what a rank of a mesh keeps and sends.
#pragma once
#include <optional>
#include <string>

#include "ridge/report/terminal.h"
#include "ridge/train/options/machine.h"
#include "ridge/train/options/options.h"

namespace ridge::cli {

struct MeshFlags {
  std::optional<std::string> mesh, shard;
};

// Plans and prints.  Fails as PlanMeshJob does, and with kOutOfMemory where a rank needs more than
// --fit allows.
Status PrintMeshPlan(const TrainOptions& options, const MeshFlags& flags, const Machine& machine,
                     bool json, const Terminal& terminal);

}  // namespace ridge::cli
