// MeshTimes: seconds of an update on a mesh, of its kernels and of the collectives of each axis.
//
// The nodes run in the order of the plan.  Collectives of the tensor axis are in line: the next
// node needs what they bring.  Those of the other axes go over one link beside the kernels in
// buckets (collective_buckets.h), each as soon as its operands exist; a node that reads a result
// waits for it.
#pragma once
#include <string>
#include <vector>

#include "ridge/plan/hardware/collectives.h"
#include "ridge/train/job/mesh_job.h"

namespace ridge {

struct AxisTime {
  std::string axis;
  int64_t ranks = 1;
  DeviceGroup group;     // one of the axis' groups: how many of it are in a node
  double busy_s = 0;     // of its collectives, if nothing ran beside them
  double exposed_s = 0;  // that kernels wait for them
};

struct MeshTimes {
  std::vector<AxisTime> axes;               // as the mesh has them
  std::vector<std::vector<double>> sums_s;  // MeshJob::steps[i].collectives[j], of one run
  double kernel_s = 0;                      // of an update
  double step_s = 0;                        // beside the transfers of MeshJob::offload
  int64_t flops = 0;                        // of a rank in an update

  double samples_s(int64_t samples) const { return static_cast<double>(samples) / step_s; }
  // Of all ranks' peak; 0: the peak is not known.
  double mfu(double peak_flops_per_s) const;
};

struct MeshLinks {
  DeviceGroup all;        // the devices of the mesh, numbered node by node
  double wire_share = 1;  // of the plan's bytes that are sent: 0.5 where 16 bits are
};

// Of a node that is a collective, if nothing ran beside it; `bytes`: instead of the node's own.
// Fails with kInvalidArgument where a link's rate is not known.
Result<double> CollectiveNodeSeconds(const PlannedNode& node, int64_t bytes,
                                     const DeviceGroup& group, double wire_share);

// `accumulate`: runs of `micro` in an update.  Fails with kInvalidArgument where a link's rate is
// not known.
Result<MeshTimes> TimesOfMesh(const MeshJob& job, int64_t accumulate, const MeshLinks& links);

}  // namespace ridge
