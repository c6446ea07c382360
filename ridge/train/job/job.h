// PlannedJob: a training job that is ready to run: graphs, passes, plan, memory, times.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/learn/length_form.h"
#include "ridge/lower/pipeline.h"
#include "ridge/plan/hardware/offload.h"
#include "ridge/plan/plan_json.h"
#include "ridge/plan/planner.h"
#include "ridge/plan/search/candidate.h"
#include "ridge/report/plan_report.h"
#include "ridge/runtime/executor.h"
#include "ridge/train/job/job_data.h"
#include "ridge/train/options/machine.h"
#include "ridge/train/options/options.h"

namespace ridge {

struct PlannedJob {
  TrainOptions options;
  ForwardInfo facts;
  bool classifier = false;
  int64_t parameter_count = 0;
  DType lr_dtype = DType::kF32;
  DType operands = DType::kF32;  // of products
  Program program;
  std::string device;                                     // of the program
  bool keeps_many = false;                                // PlanChoice::keeps_many
  std::map<std::string, std::vector<PassReport>> passes;  // by StepPlan
  std::vector<PlanCandidate> candidates;                  // PlanChoice::candidates
  MemoryEstimate memory;
  int64_t data_bytes = 0;
  int64_t limit_bytes = 0;  // memory that the run may use
  std::string limit_name;   // whose limit it is: "--fit allows"
  int64_t used_before = 0;  // Machine::used_before
  // Of a run with batches of several lengths, the whole one last; else empty.
  std::vector<PlanLength> lengths;
  double step_s = 0;                   // of one update; of several lengths the mean over an epoch
  double modelled_step_s = 0;          // by the device's rates alone
  std::optional<StepRange> range;      // PlanSummary::range
  std::optional<OffloadPlan> offload;  // where variables rest in the host's memory
  double eval_s = 0;                   // of one evaluation; 0 without data for it
  double epoch_s = 0;                  // with an evaluation, without checkpoints; 0 without data
  int cores = 0;                       // that read and compute; 0: those of another machine
  int threads = 1;                     // that compute
  int64_t read_workers = 0;            // that read beside them; 0: data are in memory
  int64_t pipeline_cap_bytes = 0;      // JobData::pipeline_cap_bytes
  std::optional<PlanCommunication> communication;  // of several ranks
  bool reads_beside = false;  // step_s was measured with the reading of its batches beside it

  bool fits() const { return memory.needed_bytes() <= limit_bytes; }
};

// REQUIRES: CheckOptions(options) is ok; `forward` has options.batch.  Without `data` (nullptr)
// the plan includes evaluation, and data_bytes, eval_s and epoch_s are 0.  `lengths`: the shorter
// forms of options.bucket, each a step of its own.
Result<PlannedJob> PlanJob(const TrainOptions& options, const Graph& forward, const JobData* data,
                           const Machine& machine, const std::vector<LengthForm>& lengths = {});

// The operand type of products that `--precision` names; of `auto` bf16.
DType NamedOperands(const std::string& precision);

// The same on a machine: `auto`, before PlanJob() decides, is bf16 if the device supports it, else
// f32.  Fails with kUnsupported for 16 bits that it does not support; f16 runs on every CPU.
Result<DType> ProductOperands(const std::string& precision, const Machine& machine);

// Runs the passes over each graph, then plans.  Products of f32 read `operands`; of 16 bits the
// inputs may be, too (lower/narrow_inputs.h).
Result<Program> PlanGraphs(const std::string& model, std::vector<NamedGraph> graphs,
                           const std::string& passes, DType operands, const Machine& machine,
                           Offload offload = Offload::kNone,
                           std::vector<std::string> host_parameters = {});

// What an evaluation reads of options.place, parameters and their averages, where the machine has a
// host for it; else nothing.
Result<std::vector<std::string>> PlacedOn(const Machine& machine, const TrainOptions& options,
                                          const Graph& forward);

// The planner's options from --passes and the machine, which must outlive them.
PlanOptions PlanOptionsFor(const PassSelection& passes, const Machine& machine, Offload offload,
                           std::vector<std::string> host_parameters = {});

// Sets step_s, eval_s and epoch_s by the program's times, and the memory estimate by
// `runtime_bytes`; call it again when these change.
void EstimateJob(const JobData* data, int64_t runtime_bytes, const Program& program,
                 PlannedJob& job);

// Seconds of an update whose batch has this form (LoadedBatch::form).
double FormSeconds(const PlannedJob& job, const Program& program, int form,
                   double (*seconds_of)(const StepPlan&) = PlannedSeconds);
// The mean over the updates of an epoch; without data of the whole length.
double MeanUpdateSeconds(const PlannedJob& job, const Program& program,
                         double (*seconds_of)(const StepPlan&) = PlannedSeconds);

// A job without evaluation and without data, for timings.
Result<PlannedJob> PlanTrainingOnly(const TrainOptions& options, const Graph& forward,
                                    const Machine& machine);

// Bytes of the process beside arena and data, measured after the kernels are created.  A peak of
// planning counts as a peak of the run.  `data_now`: bytes of data in memory; `data_planned`: with
// the pipelines' future bytes.
int64_t MeasuredRuntimeBytes(const Executor& executor, int64_t data_now, int64_t data_planned);

// Slots, data and pipelines: the plan's `inputs`.
int64_t PlannedInputBytes(const PlannedJob& job);

// For the plan's text and JSON.  `program` must outlive it.
PlanSummary SummarizeJob(const PlannedJob& job, const Program& program);

// Why the job does not fit; suggests half the batch, which is not planned.
Refusal RefusalOf(const PlannedJob& job);

// Fails with kOutOfMemory (DoesNotFit) when the job does not fit.
Status CheckFits(const PlannedJob& job);

// What --offload moves from the planned device to its host; none: nothing.  Fails with
// kInvalidArgument where nothing is known of the link between both.
Result<std::optional<OffloadPlan>> PlanOffloadOf(const TrainOptions& options,
                                                 const Program& program, const Machine& machine);

// SHA-256 over every node's kernel and layouts: equal plans, equal text.
std::string HashKernelChoices(const Program& program);

}  // namespace ridge
