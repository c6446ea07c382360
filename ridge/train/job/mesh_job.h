// MeshJob: a training on the devices of a mesh, as one of them runs it.
//
// All ranks have the same plan.  It is made of the partitioned graphs (partition/partition.h) by
// the planner of one device; collectives are nodes of it, which no backend runs yet.
#pragma once
#include <string>
#include <vector>

#include "ridge/learn/training_graph.h"
#include "ridge/partition/layouts.h"
#include "ridge/partition/partition.h"
#include "ridge/partition/state_bytes.h"
#include "ridge/plan/total.h"
#include "ridge/train/options/machine.h"
#include "ridge/train/options/options.h"

namespace ridge {

// The collectives of one step, those of equal operator and axis together.
struct MeshStep {
  std::string name;  // "train", or "micro" and "update"
  std::vector<CollectiveSum> collectives;
};

struct MeshJob {
  Mesh mesh;
  Sharding sharding;
  int64_t pairs = 0;  // of weights that axis t shares
  Program program;    // of a rank
  MemoryEstimate memory;
  StateBytes state, one_device;  // of a rank, and without a mesh
  std::vector<MeshStep> steps;
  double kernel_s = 0;  // of an update, without collectives
};

// The graphs of `train`, or `micro` and `update`, in one slice, that a mesh shares.  Fails with
// kInvalidArgument for slices, recomputing or a model's own step.
Result<std::vector<NamedGraph>> MeshTrainingGraphs(const TrainOptions& options,
                                                   const Graph& forward, const ForwardInfo& facts,
                                                   const Machine& machine);

// `options.batch` is that of all devices together.  Fails as MakeLayout, Partition and PlanProgram
// do, and with kInvalidArgument for slices, recomputing or a model's own step.
Result<MeshJob> PlanMeshJob(const TrainOptions& options, const Graph& forward,
                            const ForwardInfo& facts, const Mesh& mesh, const Sharding& sharding,
                            const Machine& machine);

}  // namespace ridge
