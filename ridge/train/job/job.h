// PlannedJob: a training job ready to be executed: graphs, passes, plan, memory, times.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/graph/passes/pipeline.h"
#include "ridge/plan/plan_json.h"
#include "ridge/plan/planner.h"
#include "ridge/runtime/executor.h"
#include "ridge/train/job/job_data.h"
#include "ridge/train/options/machine.h"
#include "ridge/train/options/options.h"

namespace ridge {

struct PlannedJob {
  TrainOptions options;
  ForwardFacts facts;
  bool classifier = false;
  int64_t parameter_count = 0;
  DType lr_dtype = DType::kF32;
  DType operands = DType::kF32;  // of products
  Program program;
  bool keeps_many = false;                                // SlicedProgram::keeps_many
  std::map<std::string, std::vector<PassReport>> passes;  // by StepPlan
  MemoryEstimate memory;
  int64_t data_bytes = 0;
  int64_t limit_bytes = 0;     // what the run may use
  double step_s = 0;           // of one update
  double modelled_step_s = 0;  // by the device's rates alone
  double eval_s = 0;           // of one evaluation; 0 without data for it
  double epoch_s = 0;          // 0 without data

  bool fits() const { return memory.peak_bytes <= limit_bytes; }
};

// REQUIRES: CheckOptions(options) is ok; `forward` has options.batch.  `data` may be nullptr: then
// only what needs no data is planned.
Result<PlannedJob> PlanJob(const TrainOptions& options, const Graph& forward, const JobData* data,
                           const Machine& machine);

// What products read under `--precision`: f32 or bf16; `auto` is bf16 where the device has it.
// Fails with kUnsupported for bf16 where it has not.
Result<DType> ProductOperands(const std::string& precision, const Machine& machine);

// Passes over each graph, then the plan.  Products of f32 read `operands`.
Result<Program> PlanGraphs(const std::string& model, std::vector<NamedGraph> graphs,
                           const std::string& passes, DType operands, const Machine& machine);

// The two halves of PlanGraphs: what the passes make of graphs does not depend on those that they
// are planned with.
struct OptimizedGraphs {
  std::vector<NamedGraph> graphs;
  std::map<std::string, std::vector<PassReport>> passes;  // by name
  int64_t recomputed = 0;  // how many values NamedGraph::recompute has chosen
};
Result<OptimizedGraphs> OptimizeGraphs(std::vector<NamedGraph> graphs, const std::string& passes,
                                       DType operands, const Machine& machine);
Result<Program> PlanOptimized(const std::string& model, const std::vector<NamedGraph>& graphs,
                              const std::string& passes, const Machine& machine);

// step_s, eval_s and epoch_s from the program's times, and the memory estimate with so many bytes
// for the runtime; call again when they have become better known.
void EstimateJob(const JobData* data, int64_t runtime_bytes, const Program& program,
                 PlannedJob& job);

// A job without evaluation and without data, for timings.
Result<PlannedJob> PlanTrainingOnly(const TrainOptions& options, const Graph& forward,
                                    const Machine& machine);

// What the process holds beside arena and data, by the device profile.
int64_t ProfiledRuntimeBytes(const DeviceProfile& profile, const Program& program);

// The same, measured: kernels exist by now, so it is known rather than guessed.  A peak that
// planning reached is one of the run too.  `data_now`: bytes of data in memory; `data_planned`:
// with what the pipelines will add.
int64_t MeasuredRuntimeBytes(const Executor& executor, int64_t data_now, int64_t data_planned);

// For the plan's text and JSON.  `program` must outlive it.
PlanSummary SummarizeJob(const PlannedJob& job, const Program& program);

// Fails with kOutOfMemory when the job does not fit: what it needs, where the peak is, the largest
// values, and what would help.
Status CheckFits(const PlannedJob& job);

// SHA-256 over every node's kernel and layouts: equal plans, equal text.
std::string HashKernelChoices(const Program& program);

}  // namespace ridge
