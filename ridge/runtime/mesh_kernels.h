// The kernels of a mesh's nodes (plan/mesh_nodes.h), on memory that the host reaches.
//
// Sums (largest, smallest) are taken in the order of the axis, whatever arrives first, so they are
// a function of the layout alone.
#pragma once
#include <memory>

#include "ridge/backend/backend.h"
#include "ridge/dist/communicator.h"
#include "ridge/plan/program.h"

namespace ridge {

// `communicator`: null: a kernel that fails with kUnavailable, of a plan that no ranks run.  It and
// `place` outlive the kernel.  Collectives add their seconds to `spent_s`.
// REQUIRES: IsMeshNode(node).
std::unique_ptr<Kernel> MakeMeshKernel(const PlannedNode& node, const std::string& step,
                                       const MeshPlace& place, Backend& backend,
                                       Communicator* communicator, double& spent_s);

}  // namespace ridge
