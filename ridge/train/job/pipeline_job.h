// PipelineJob: a training on the stages of a pipeline.
//
// The step is cut by seconds of the nominal device, planned, and cut again by what the plans of the
// stages take; the best of a few such rounds stays, by the nominal device too, so that all ranks
// cut alike.  A device's program has a step for each graph of pipeline/rank_graphs.h.
#pragma once
#include <string>
#include <vector>

#include "ridge/learn/training_graph.h"
#include "ridge/partition/layouts.h"
#include "ridge/pipeline/stages.h"
#include "ridge/pipeline/timeline.h"
#include "ridge/plan/total.h"
#include "ridge/train/options/machine.h"
#include "ridge/train/options/options.h"

namespace ridge {

// A chunk of the model; with several a device, chunk c is on device c % p.
struct PipelineChunk {
  int64_t parameters_bytes = 0, gradients_bytes = 0, optimizer_bytes = 0, other_bytes = 0;
  int64_t kept_bytes = 0;  // of a micro batch, between its forward and backward
  int64_t forward_bytes = 0, backward_bytes = 0;  // sent for a micro batch
  int64_t exchange_bytes = 0;  // sent for an update: parts of the norm, tied weights
  int64_t kernels = 0;         // of a micro batch and an update
  ChunkSeconds seconds;        // of a micro batch
  double update_s = 0;

  int64_t state_bytes() const {
    return parameters_bytes + gradients_bytes + optimizer_bytes + other_bytes;
  }
};

struct PipelineRank {
  int64_t kept_micros = 0;  // most micro batches of chunks that it keeps at once
  int64_t kept_bytes = 0;   // of the states of micro batches, with their copies
  int64_t arena_bytes = 0;
  int64_t peak_bytes = 0;  // of the process
  double update_s = 0;
};

struct PipelineJob {
  Mesh mesh;
  ScheduleKind kind;
  PipelineSchedule schedule;
  int capacity = 0;  // messages that must be able to wait (check_schedule.h)
  std::vector<PipelineChunk> chunks;
  std::vector<PipelineRank> ranks;
  std::vector<Program> programs;  // by device
  Timeline timeline;
  int64_t exchange_bytes = 0;  // of all stages
  double exchange_s = 0;
  double step_s = 0;        // timeline, the slowest device's update, the exchange
  double nominal_s = 0;     // of the timeline on the nominal device, without transfers
  double one_device_s = 0;  // kernels of the same update on one device

  const PipelineRank& largest_rank() const;
};

// In one slice: `micro` and `update`, and `eval` where the job evaluates.
struct PipelineGraphs {
  std::vector<NamedGraph> training, evaluation;
};
Result<PipelineGraphs> PlainPipelineGraphs(const TrainOptions& options, const Graph& forward,
                                           const ForwardInfo& facts, const Machine& machine);

// `mesh` has the axis p and no other.  Fails with kInvalidArgument for other axes and for less than
// two micro batches (--accumulate), and as MakeSchedule, ChooseCuts, MakeStages and PlanProgram do.
Result<PipelineJob> PlanPipelineJob(const TrainOptions& options, const PipelineGraphs& graphs,
                                    const Mesh& mesh, const ScheduleKind& kind,
                                    const Machine& machine);

// Of an update: the rank's own stages by its program, the others' as they were planned.
// REQUIRES: the program is of a pipeline.
double PipelineUpdateSeconds(const Program& program, double (*seconds_of)(const StepPlan&));

}  // namespace ridge
