// MeshJob: a training on the devices of a mesh, as one of them runs it.
//
// All ranks have the same plan.  It is made of the partitioned graphs (mesh_graphs.h) by the
// planner of one device; collectives are nodes of it.
#pragma once
#include <string>
#include <vector>

#include "ridge/learn/training_graph.h"
#include "ridge/plan/hardware/offload.h"
#include "ridge/plan/total.h"
#include "ridge/train/job/mesh_graphs.h"
#include "ridge/train/options/machine.h"
#include "ridge/train/options/options.h"

namespace ridge {

struct MeshJob {
  Mesh mesh;
  Sharding sharding;
  int64_t pairs = 0;  // of weights that axis t shares
  Program program;    // of a rank
  MemoryEstimate memory;
  std::optional<OffloadPlan> offload;  // counted in `memory`
  StateBytes state, one_device;        // of a rank, and without a mesh
  std::vector<MeshStep> steps;
  double kernel_s = 0;  // of an update, without collectives
};

// Fails with kInvalidArgument for slices, recomputing, or a model's own step.
Status CheckOneSlice(const TrainOptions& options, const ForwardInfo& facts);

// The graphs of `train`, or `micro` and `update`, in one slice, that a mesh shares.  Fails as
// CheckOneSlice.
Result<std::vector<NamedGraph>> MeshTrainingGraphs(const TrainOptions& options,
                                                   const Graph& forward, const ForwardInfo& facts,
                                                   const Machine& machine);

// `options.batch` is that of all devices together.  Fails as MakeLayout, Partition and PlanProgram
// do, and with kInvalidArgument for slices, recomputing or a model's own step.
Result<MeshJob> PlanMeshJob(const TrainOptions& options, const Graph& forward,
                            const ForwardInfo& facts, const Mesh& mesh, const Sharding& sharding,
                            const Machine& machine);

}  // namespace ridge
