#include "ridge/train/job/rehearsed_job.h"

#include <malloc.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "ridge/core/device_bytes.h"
#include "ridge/plan/staging.h"
#include "ridge/plan/total.h"
#include "ridge/runtime/profile_store.h"
#include "ridge/runtime/rehearsal.h"
#include "ridge/runtime/whole_variables.h"
#include "ridge/train/job/calibration.h"
#include "ridge/train/job/first_runs.h"

namespace ridge {
namespace {

// Memory for code that kernels map at their first run.
constexpr int64_t kCodeOfKernel = int64_t{16} << 10, kMostCode = int64_t{1} << 20;

int64_t CodeToCome(const Program& program, const std::map<std::string, double>& timed) {
  std::set<std::string_view> others;
  for (const StepPlan& step : program.steps) {
    for (const PlannedNode& node : step.nodes) {
      if (!timed.contains(node.choice.key)) others.insert(node.choice.key);
    }
  }
  return std::min(static_cast<int64_t>(others.size()) * kCodeOfKernel, kMostCode);
}

// The first checkpoint is the first to run the kernels that copy variables into row-major ones, one
// for each type and layout.
int64_t LayoutCopiesToCome(const Program& program) {
  std::set<std::pair<std::string, LayoutId>> copies;
  for (const PersistentValue& value : program.persistent) {
    if (value.layout != kRowMajor) copies.insert({TypeToString(value.type), value.layout});
  }
  return static_cast<int64_t>(copies.size()) * kCodeOfKernel;
}

// Heap that the plan's report and its JSON leave behind: 1.1 to 1.7 KiB per node were measured.
int64_t ReportToCome(const Program& program) {
  constexpr int64_t kReportOfNode = 1792;
  return CountKernels(program) * kReportOfNode;
}

// Plans that were compared leave a heap in pieces, whose trimmed pages come back with what is
// allocated in them: up to 1.3 MiB after eight plans were measured.
int64_t PiecesToCome(const PlannedJob& job) {
  constexpr int64_t kPiecesOfPlan = int64_t{176} << 10;
  const auto compared = static_cast<int64_t>(job.candidates.size());
  return compared > 1 ? compared * kPiecesOfPlan : 0;
}

// Of ranks that are planned only; one that joined has it.  Processes that joined had up to 1.3 MiB
// more than by the bytes that were measured in another one.
int64_t JoiningToCome(const Machine& machine) {
  constexpr int64_t kSpread = int64_t{2} << 20;
  if (machine.communicator != nullptr || machine.ranks == 1) return 0;
  return machine.sums.join_bytes + kSpread;
}

// Metrics and checkpoints allocate between steps, when kernels have freed their heap, so only the
// larger of the two counts; part of the former stays: objects, and the pages of the program that
// run first then.  Where no file of the program was in the page cache, 975 KiB were measured.
int64_t RestToCome(const Program& program, int64_t still_to_come) {
  constexpr int64_t kStays = int64_t{5} << 18;
  return std::max(std::min(kStays, still_to_come), still_to_come - HeapBytes(program));
}

// Times the kernels; returns the bytes that untimed kernels will map later.
Result<int64_t> TimeKernels(const Machine& machine, double budget_s, Executor& executor) {
  RIDGE_ASSIGN_OR_RETURN(const auto kernel_s,
                         Rehearse(executor, machine.backend->nominal(), budget_s));
  const Roofline profiled = machine.measured();
  if (Contradicts(RehearsedOverProfiled(kernel_s, profiled, executor.program())))
    NoteContradiction(machine.profile.id);
  EstimateTimesBy(kernel_s, profiled, executor.mutable_program());
  PriceSums(machine.sums, executor.mutable_program());
  return CodeToCome(executor.program(), kernel_s);
}

void Calibrate(double factor, Program& program) {
  for (StepPlan& step : program.steps) step.calibration *= factor;
}

Status TimeUpdates(const JobData& data, double budget_s, PlannedJob& job, Executor& executor) {
  RIDGE_RETURN_IF_ERROR(executor.transfers().Initialize(job.options.seed));
  RIDGE_ASSIGN_OR_RETURN(const double factor, MeasureUpdates(executor, job, data, budget_s));
  Calibrate(factor, executor.mutable_program());
  job.reads_beside = factor != 1;
  return Status();
}

// Kernels and whole updates; returns the bytes that untimed kernels will map later.
Result<int64_t> TimeJob(const Machine& machine, const JobData* data,
                        const RehearsalOptions& options, PlannedJob& job, Executor& executor) {
  double recorded_s = 0;
  if (machine.ranks == 1 && machine.backend->device().stream(0).records()) {
    RIDGE_ASSIGN_OR_RETURN(recorded_s, ChooseLanes(executor, job, options.kernels_s));
    DeviceReadings unread;
    RIDGE_RETURN_IF_ERROR(
        RecordAllSteps(executor, machine.bytes == nullptr ? unread : machine.bytes->bytes().used));
  }
  RIDGE_ASSIGN_OR_RETURN(const int64_t code, TimeKernels(machine, options.kernels_s, executor));
  const double planned_s = MeanUpdateSeconds(job, executor.program());
  if (recorded_s > 0 && planned_s > 0)
    Calibrate(recorded_s / planned_s, executor.mutable_program());
  // Ranks would have to agree on the number of updates.
  if (data != nullptr && machine.ranks == 1)
    RIDGE_RETURN_IF_ERROR(TimeUpdates(*data, options.updates_s, job, executor));
  return code;
}

// Of a device, beside its arena and what it held when it was opened.
int64_t PlannedKernelBytes(const Machine& machine, const Program& program) {
  const DeviceFacts facts = machine.measured().facts();
  return ProfiledRuntimeBytes(facts, program) - facts.runtime_bytes;
}

// Of a device with a memory of its own, before a kernel runs: what is planned, and the arena.
void BeginBytes(const Machine& machine, const Executor& executor, DeviceBytes& bytes) {
  const Program& program = executor.program();
  bytes.planned.context = bytes.used.context - bytes.used.before.value_or(0);
  bytes.planned.arena = program.device_arena_bytes();
  bytes.planned.kernels = PlannedKernelBytes(machine, program);
  bytes.planned.graphs = RecordedBytes(program, machine.recorded_run_bytes);
  const int64_t exchanges = executor.staged_exchange_bytes();
  bytes.planned_staging = StagingBytes(program) + program.host_bytes + exchanges;
  bytes.staging = executor.transfers().staging_bytes() + executor.arena().host_bytes() + exchanges;
  bytes.used.arena = executor.used_with_arena().value_or(0);
  bytes.used.kernels = bytes.used.graphs = bytes.used.arena;
}

// Events and whatever else timing took are the kernels'.
void EndBytes(int64_t used_bytes, DeviceReadings& use) {
  use.kernels += used_bytes - use.graphs;
  use.graphs = used_bytes;
}

// Of a memory of its own, what is beside the arena: contexts and modules, all of which are loaded
// where each step has run, else what is planned of them.
int64_t DeviceRuntimeBytes(const Machine& machine, bool has_run, const Executor& executor) {
  const int64_t used = machine.backend->device().used_bytes().value_or(0);
  const int64_t beside = used - (executor.arena().bytes() - executor.arena().host_bytes());
  if (machine.bytes != nullptr) EndBytes(used, machine.bytes->bytes().used);
  if (has_run) return beside;
  return beside + PlannedKernelBytes(machine, executor.program()) +
         RecordedBytes(executor.program(), machine.recorded_run_bytes);
}

// Whether steps ran.
Result<bool> RunFirst(const Machine& machine, const RehearsalOptions& options,
                      const PlannedJob& job, Executor& executor) {
  DeviceBytes* const bytes = machine.bytes == nullptr ? nullptr : &machine.bytes->bytes();
  if (bytes != nullptr) BeginBytes(machine, executor, *bytes);
  const bool takes = machine.ranks == 1 && machine.compute == nullptr &&
                     (!machine.in_host_memory() || machine.backend->device().stream(0).records());
  if (!takes || (options.kernels_s <= 0 && !options.will_run)) return false;
  DeviceReadings unread;
  RIDGE_RETURN_IF_ERROR(RunAllSteps(executor, job, bytes == nullptr ? unread : bytes->used));
  return true;
}

}  // namespace

Result<std::unique_ptr<Executor>> RehearseJob(const Machine& machine, const JobData* data,
                                              const RehearsalOptions& options, PlannedJob& job) {
  RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor,
                         Executor::Create(std::move(job.program), *machine.backend,
                                          machine.communicator, machine.compute));
  job.program = {};
  if (job.options.copy_stream == "off") executor->transfers().UploadInLine();
  (void)malloc_trim(0);  // of the plans that were compared nothing stays resident
  if (options.will_run) executor->TouchArena();
  int64_t to_come =
      RestToCome(executor->program(), options.still_to_come_bytes) + PiecesToCome(job);
  to_come += JoiningToCome(machine);
  if (executor->program().place && data != nullptr) to_come += WholeVariables::kMostBytes;
  if (data != nullptr)
    to_come += ReportToCome(executor->program()) + LayoutCopiesToCome(executor->program());
  RIDGE_ASSIGN_OR_RETURN(const bool has_run, RunFirst(machine, options, job, *executor));
  if (options.kernels_s > 0 && machine.compute == nullptr) {
    RIDGE_ASSIGN_OR_RETURN(const int64_t code, TimeJob(machine, data, options, job, *executor));
    to_come += code;
  }
  const int64_t data_now =
      data == nullptr ? 0 : ResidentBytes({data->train, data->validation, data->test});
  const int64_t runtime = machine.in_host_memory()
                              ? MeasuredRuntimeBytes(*executor, data_now, job.data_bytes) + to_come
                              : DeviceRuntimeBytes(machine, has_run, *executor);
  EstimateJob(data, runtime, executor->program(), job);
  return executor;
}

}  // namespace ridge
