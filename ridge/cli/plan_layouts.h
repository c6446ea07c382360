// `ridge plan MODEL --mesh auto` and `--mesh p=2,d=4,t=8`: layouts over many devices by formula.
#pragma once
#include "ridge/cli/plan_mesh.h"

namespace ridge::cli {

// Whether the mesh is one that is composed, not partitioned: "auto", stages beside other axes or on
// a cluster, or one whose activations are recomputed.
bool IsComposed(const MeshFlags& flags, const TrainOptions& options, const MeshTarget& target);

// Plans and prints.  `devices`: of --devices, for "auto".  Fails as SearchLayouts and PlanLayout
// do, and with kOutOfMemory where nothing fits.
Status PrintLayouts(const TrainOptions& options, const MeshFlags& flags, const MeshTarget& place,
                    const Hardware& hardware, int64_t devices, const Machine& machine, bool json,
                    const Terminal& terminal);

}  // namespace ridge::cli
