#include "ridge/train/job/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "ridge/core/process.h"
#include "ridge/core/rounding.h"
#include "ridge/core/sha256.h"
#include "ridge/core/threads.h"
#include "ridge/dist/agreement.h"
#include "ridge/graph/ops/shared/update_group.h"
#include "ridge/learn/averages.h"
#include "ridge/learn/host_placement.h"
#include "ridge/lower/narrow_inputs.h"
#include "ridge/models/model.h"
#include "ridge/pipeline/role.h"
#include "ridge/plan/choose/communication.h"
#include "ridge/plan/hardware/program_memory.h"
#include "ridge/plan/mesh_nodes.h"
#include "ridge/plan/search/rewrite_graphs.h"
#include "ridge/plan/staging.h"
#include "ridge/plan/tree_sums.h"
#include "ridge/train/job/pipeline_job.h"
#include "ridge/train/job/read_cost.h"
#include "ridge/train/job/slicing.h"

namespace ridge {
namespace {

// Whether the run evaluates: then `eval` belongs to the plan.
bool Evaluates(const JobData* data) { return data == nullptr || data->eval_set() != nullptr; }

}  // namespace

DType NamedOperands(const std::string& precision) {
  if (precision == "f32" || precision == "tf32") return DType::kF32;
  return precision == "f16" ? DType::kF16 : DType::kBF16;
}

Result<DType> ProductOperands(const std::string& precision, const Machine& machine) {
  const DType operands = NamedOperands(precision);
  if (operands == DType::kF32 || machine.query().Multiplies(operands)) return operands;
  // Its products are f32's, of rounded operands (lower/autocast.h).
  if (operands == DType::kF16 && machine.in_host_memory()) return operands;
  if (precision == "auto") return DType::kF32;
  return Status(ErrorCode::kUnsupported,
                fmt::format("--precision {0}: this device has no instructions for products of {0}"
                            "{1}. hint: --precision auto",
                            precision,
                            operands == DType::kBF16 ? " (avx512_bf16 or amx_bf16 on a CPU)" : ""));
}

namespace {

Status CheckOffload(const TrainOptions& options, const Machine& machine) {
  if (machine.is_here() && !machine.in_host_memory() &&
      !IsReachedInPlace(OffloadOf(options.offload))) {
    return InvalidArgument(fmt::format(
        "--offload is '{0}'; a run has no windows for parameters. hint: --offload optimizer, or "
        "ridge plan MODEL --on h100-sxm --offload {0}",
        options.offload));
  }
  if (machine.host_link_bytes_per_s > 0) return Status();
  return InvalidArgument(fmt::format(
      "--offload is '{}'; {} has no memory beside its host's, or its link is not known. hint: "
      "ridge plan MODEL --on h100-sxm --offload {}",
      options.offload, machine.profile.name, options.offload));
}

Status CheckHostMemory(const TrainOptions& options, const Program& program) {
  const int64_t most = AvailableMemoryBytes();
  const int64_t needed = program.host_bytes + StagingBytes(program);
  if (needed <= most) return Status();
  const bool offloads = options.offload != "none";
  return Status(ErrorCode::kOutOfMemory,
                fmt::format("--{}: {} of the host's memory are needed, {} are available. hint: "
                            "--optimizer-state 8bit",
                            offloads ? "offload " + options.offload : "place", FormatBytes(needed),
                            FormatBytes(most)));
}

}  // namespace

Result<std::optional<OffloadPlan>> PlanOffloadOf(const TrainOptions& options,
                                                 const Program& program, const Machine& machine) {
  const Offload offload = OffloadOf(options.offload);
  if (offload == Offload::kNone && options.place.empty()) return std::optional<OffloadPlan>();
  if (offload != Offload::kNone) RIDGE_RETURN_IF_ERROR(CheckOffload(options, machine));
  if (machine.is_here()) RIDGE_RETURN_IF_ERROR(CheckHostMemory(options, program));
  return std::optional(PlanOffload(program,
                                   offload == Offload::kNone ? Offload::kOptimizer : offload,
                                   options.accumulate, machine.host_link_bytes_per_s));
}
PlanOptions PlanOptionsFor(const PassSelection& passes, const Machine& machine, Offload offload,
                           std::vector<std::string> host_parameters) {
  const double link = machine.host_link_bytes_per_s;
  return {.in_place = passes.Has("inplace"),
          .layout = passes.Has("layout"),
          .kernel_s = &machine.kernel_s,
          .inter_op = machine.inter_op,
          .overlap_exchange = machine.overlap == GradientOverlap::kOn,
          .on_host = PurposesOnHost(link > 0 ? offload : Offload::kNone),
          .host_link_bytes_per_s = IsReachedInPlace(offload) || !host_parameters.empty() ? link : 0,
          .host_parameters = std::move(host_parameters)};
}

Result<Program> PlanGraphs(const std::string& model, std::vector<NamedGraph> graphs,
                           const std::string& passes, DType operands, const Machine& machine,
                           Offload offload, std::vector<std::string> host_parameters) {
  RIDGE_ASSIGN_OR_RETURN(const PassSelection selection, ParsePassSpec(passes));
  KernelQuery& kernels = machine.query();
  RIDGE_ASSIGN_OR_RETURN(
      RewrittenGraphs rewritten,
      RewriteGraphs(std::move(graphs), {.passes = selection, .operands = operands}, kernels));
  if (operands != DType::kF32) {
    RIDGE_ASSIGN_OR_RETURN(rewritten.graphs, NarrowInputs(std::move(rewritten.graphs)));
  }
  return PlanProgram(model, rewritten.graphs, kernels, machine.measured(),
                     PlanOptionsFor(selection, machine, offload, std::move(host_parameters)));
}

Result<std::vector<std::string>> PlacedOn(const Machine& machine, const TrainOptions& options,
                                          const Graph& forward) {
  if (options.place.empty() || machine.query().host() == nullptr) return std::vector<std::string>();
  RIDGE_ASSIGN_OR_RETURN(std::vector<std::string> placed, PlacedParameters(options.place, forward));
  if (options.ema == 0) return placed;
  const size_t count = placed.size();
  for (size_t i = 0; i < count; ++i) placed.push_back(placed[i] + kAverageSuffix);
  return placed;
}

namespace {

struct PrecisionChoice {
  std::string precision;  // as given; of auto f32 or bf16
  DType operands = DType::kF32;
  PlanChoice plan;
};

Result<PrecisionChoice> SearchWith(const SearchRequest& query, const std::string& precision) {
  TrainOptions options = query.options;
  options.precision = precision;
  PrecisionChoice found;
  found.precision = precision;
  RIDGE_ASSIGN_OR_RETURN(found.operands, ProductOperands(precision, query.machine));
  RIDGE_ASSIGN_OR_RETURN(found.plan,
                         SearchTrainingPlan({options, query.forward, query.facts, query.with_eval,
                                             query.limit_bytes, query.machine, query.lengths}));
  return found;
}

int64_t LimitBytes(const TrainOptions& options, const Machine& machine) {
  if (options.fit_bytes > 0) return machine.used_before + options.fit_bytes;
  if (machine.in_host_memory()) return AvailableMemoryBytes();
  return machine.memory_bytes > 0 ? machine.memory_bytes : kUnknownLimit;
}

// A search counts the nominal runtime.  Of a GPU that is here the runtime is what is in use there,
// by others too.
int64_t SearchLimitBytes(const PlannedJob& job, const Machine& machine) {
  const int64_t limit = job.limit_bytes - job.data_bytes;
  if (!machine.is_here() || machine.in_host_memory()) return limit;
  return limit - machine.profile.runtime_bytes + machine.query().nominal().facts().runtime_bytes;
}

std::string LimitName(const TrainOptions& options, const Machine& machine) {
  if (options.fit_bytes > 0) return "--fit allows";
  if (!options.device_memory.empty()) return "--device-memory allows";
  return (machine.in_host_memory() ? "this machine" : machine.profile.name) + " has";
}

// The candidate that was taken.
const PlanCandidate& Taken(const PlanChoice& choice) {
  return *std::find_if(choice.candidates.begin(), choice.candidates.end(),
                       [](const PlanCandidate& c) { return c.chosen; });
}

// The given precision; `auto` is bf16 where the device has it and the step is foreseen to be faster
// by it, on the nominal device as all choices.
Result<PrecisionChoice> SearchPrecision(const SearchRequest& query) {
  const std::string& given = query.options.precision;
  if (given != "auto") return SearchWith(query, given);
  RIDGE_ASSIGN_OR_RETURN(PrecisionChoice f32, SearchWith(query, "f32"));
  if (!query.machine.query().Multiplies(DType::kBF16)) return f32;
  RIDGE_ASSIGN_OR_RETURN(PrecisionChoice bf16, SearchWith(query, "bf16"));
  const PlanCandidate &wide = Taken(f32.plan), &narrow = Taken(bf16.plan);
  if (wide.fits != narrow.fits) return wide.fits ? f32 : bf16;
  return narrow.seconds < wide.seconds ? bf16 : f32;
}

void TakeReading(const JobData& data, const Machine& machine, PlannedJob& job) {
  job.cores = std::max(1, AvailableThreads() / machine.ranks);
  job.threads = machine.backend->threads();
  if (!data.train->reads_slowly()) return;
  job.read_workers = data.workers;
  job.pipeline_cap_bytes = data.pipeline_cap_bytes;
}

StepRange RangeOf(double step_s, const Machine& machine) {
  const Software& software = machine.software;
  return {step_s * software.low, step_s * software.high, software.id,
          software.scale,        software.evidence,      machine.peak_flops_per_s};
}

// The batches of each length, where there are several.
std::vector<PlanLength> LengthsOf(const std::vector<LengthForm>& forms, const Graph& forward,
                                  const ForwardInfo& facts, const JobData* data) {
  std::vector<PlanLength> lengths;
  if (forms.empty()) return lengths;
  for (const LengthForm& form : forms)
    lengths.push_back({form.length, form.batch, 0, LengthName("train", form.length)});
  lengths.push_back({WholeLength(forward, facts, forms.front()), facts.batch, 0, "train"});
  if (data == nullptr || data->lengths == nullptr) return lengths;
  for (size_t i = 0; i < lengths.size(); ++i)
    lengths[i].batches = data->lengths->classes[i].batches();
  return lengths;
}

// Where the seconds of sums over ranks come from.
std::string SumSource(const Machine& machine) {
  const SumTimes& sums = machine.sums;
  if (sums.known()) return fmt::format("{}, measured {}", sums.mpi, sums.made_at.substr(0, 10));
  if (!machine.group) return "by the memory's rate: nobody has measured it";
  const bool known = AllReduceSeconds(*machine.group, 1).has_value();
  return known ? AllReduceSource(*machine.group) : "not counted: its link's rate is not known";
}

// Gradients of such devices leave while others are computed: an update has what is left of the sums
// then.
void PriceByGroup(const DeviceGroup& group, PlannedJob& job) {
  SetSumSeconds(job.program, [](const StepPlan&) { return 0.0; });
  std::vector<GradientReady> gradients = GradientTimes(job.program, job.options.accumulate);
  for (GradientReady& gradient : gradients) gradient.bytes /= job.options.wire == "bf16" ? 2 : 1;
  const Communication sums = SumGradients(group, gradients, MeanUpdateSeconds(job, job.program));
  job.communication->busy_s = sums.busy_s;
  SetSumSeconds(job.program, [&](const StepPlan& step) {
    if (step.name != "eval") return sums.exposed_s;
    return AllReduceSeconds(group, static_cast<double>(step.tree->block_bytes)).value_or(0);
  });
}

// Of an update's step; none where it sums over no ranks, where nothing is known of their links, or
// where there is no choice: bf16 is for memory that the host reaches.
std::vector<WirePrice> WirePrices(const Machine& machine, const Program& program) {
  std::vector<WirePrice> prices;
  if (!machine.query().memory().host_visible) return prices;
  for (const StepPlan& step : program.steps) {
    if (step.name != "train" || !step.tree || step.tree->share.ranks == 1) continue;
    for (const bool bf16 : {false, true}) {
      TreePlan tree = *step.tree;
      tree.narrow = bf16 ? NarrowSums(program, step) : std::vector<int>();
      const WireBlock block = WireBlockOf(program, tree, step.sums);
      const int64_t wire_bytes = block.WireOffset(block.bytes);
      const std::optional<double> seconds =
          machine.group          ? AllReduceSeconds(*machine.group, static_cast<double>(wire_bytes))
          : machine.sums.known() ? std::optional(machine.sums.Seconds(step.tree->share, block))
                                 : std::nullopt;
      if (seconds)
        prices.push_back({bf16 ? "bf16" : "f32", *seconds, SentBytes(step.tree->share, block)});
    }
  }
  return prices;
}

void PriceCommunication(const Machine& machine, PlannedJob& job) {
  if (machine.ranks == 1) return;
  job.communication = PlanCommunication{.source = SumSource(machine)};
  if (job.options.mesh.empty()) job.communication->wires = WirePrices(machine, job.program);
  PriceSums(machine.sums, job.program);
  if (machine.group) PriceByGroup(*machine.group, job);
}

Result<PlannedJob> PlanOnce(const TrainOptions& given, const Graph& forward, const JobData* data,
                            bool with_eval, const Machine& machine,
                            const std::vector<LengthForm>& lengths) {
  TrainOptions options = given;
  if (machine.adds_in_tree() && options.mesh.empty()) {
    options.sums = "tree";
    RIDGE_RETURN_IF_ERROR(CheckPlanOptions(options));
  }
  PlannedJob job;
  job.options = options;
  RIDGE_ASSIGN_OR_RETURN(job.facts, InspectForward(forward));
  job.classifier = job.facts.logits != kNoValue;
  job.parameter_count = ParameterCount(forward);
  if (forward.type(job.facts.loss).dtype == DType::kF64) job.lr_dtype = DType::kF64;
  if (const ValueId lr = forward.FindValue(kLrInput); lr != kNoValue)
    job.lr_dtype = forward.type(lr).dtype;
  // Data are in the memory of the host, and read there.
  if (data != nullptr && machine.is_here()) TakeReading(*data, machine, job);
  const bool counts_data = data != nullptr && machine.in_host_memory();
  job.data_bytes = counts_data ? PlannedDataBytes(*data, options.batch) : 0;
  job.limit_bytes = LimitBytes(options, machine);
  job.limit_name = LimitName(options, machine);
  job.used_before = machine.used_before;
  RIDGE_ASSIGN_OR_RETURN(PrecisionChoice found,
                         SearchPrecision({options, forward, job.facts, with_eval,
                                          SearchLimitBytes(job, machine), machine, lengths}));
  PlanChoice& choice = found.plan;
  job.operands = found.operands;
  job.options.precision = found.precision;
  if (found.operands == DType::kF32) job.options.precision_for.clear();
  job.options.slices = std::to_string(choice.slices);
  job.options.recompute = choice.recompute;
  job.options.loss_chunks = std::to_string(choice.loss_chunks);
  job.keeps_many = choice.keeps_many;
  job.program = std::move(choice.program);
  job.device = job.program.device;
  job.lengths = LengthsOf(lengths, forward, job.facts, data);
  if (counts_data) job.data_bytes = PlannedDataBytes(*data, options.batch, &job.program);
  PriceCommunication(machine, job);
  job.passes = std::move(choice.passes);
  job.candidates = std::move(choice.candidates);
  RIDGE_ASSIGN_OR_RETURN(job.offload, PlanOffloadOf(job.options, job.program, machine));
  const int64_t runtime = ProfiledRuntimeBytes(machine.measured().facts(), job.program) +
                          RecordedBytes(job.program, machine.recorded_run_bytes);
  EstimateJob(data, runtime + machine.sums.join_bytes, job.program, job);
  if (!machine.is_here()) job.range = RangeOf(job.step_s, machine);
  if (machine.context_spread_bytes > 0 && machine.software.id == kOwnSoftware)
    job.memory.range = PlannedRange(job.program, job.memory, machine.context_spread_bytes);
  if (machine.software.memory_scale > 0) job.memory = MemoryOf(machine.software, job.memory);
  return job;
}

// `--place auto`: without, or with as many of the tables as make the plan fit, the largest first
// that the host has memory for.  Ranks place none.
Result<PlannedJob> PlanPlaced(const TrainOptions& given, const Graph& forward, const JobData* data,
                              bool with_eval, const Machine& machine,
                              const std::vector<LengthForm>& lengths) {
  TrainOptions options = given;
  const auto plan = [&] { return PlanOnce(options, forward, data, with_eval, machine, lengths); };
  if (!IsAutoPlace(given.place)) return plan();
  options.place.clear();
  RIDGE_ASSIGN_OR_RETURN(PlannedJob job, plan());
  if (machine.query().host() == nullptr) return job;
  for (const std::string& table : TablesOf(forward)) {
    if (job.fits()) break;
    options.place.push_back(table + "=cpu");
    Result<PlannedJob> placed = plan();
    if (placed.status().code() == ErrorCode::kUnsupported) return job;
    if (placed.status().code() == ErrorCode::kOutOfMemory) {
      options.place.pop_back();
      continue;
    }
    RIDGE_ASSIGN_OR_RETURN(job, std::move(placed));
  }
  return job;
}

// Of the slowest rank; without bound where a rank has no such plan.
Result<double> SlowestStepSeconds(const Result<PlannedJob>& own, const Machine& machine) {
  const bool runs = own.ok() && own->fits();
  const double own_s = runs ? own->step_s : std::numeric_limits<double>::infinity();
  RIDGE_ASSIGN_OR_RETURN(const std::vector<std::vector<double>> all,
                         Agreement(machine.communicator).All({own_s}));
  double slowest_s = 0;
  for (const std::vector<double>& of : all) slowest_s = std::max(slowest_s, of.front());
  return slowest_s;
}

// All ranks take the same.
Result<PlannedJob> PlanParts(const TrainOptions& options, const Graph& forward, const JobData* data,
                             bool with_eval, const Machine& machine,
                             const std::vector<LengthForm>& lengths) {
  const auto plan = [&](GradientOverlap overlap) {
    Machine with = machine;
    with.overlap = overlap;
    return PlanPlaced(options, forward, data, with_eval, with, lengths);
  };
  if (machine.overlap != GradientOverlap::kPlanned) return plan(machine.overlap);
  Result<PlannedJob> in_line = plan(GradientOverlap::kOff), beside = plan(GradientOverlap::kOn);
  RIDGE_ASSIGN_OR_RETURN(const double in_line_s, SlowestStepSeconds(in_line, machine));
  RIDGE_ASSIGN_OR_RETURN(const double beside_s, SlowestStepSeconds(beside, machine));
  return beside_s < in_line_s ? std::move(beside) : std::move(in_line);
}

}  // namespace

Result<PlannedJob> PlanJob(const TrainOptions& options, const Graph& forward, const JobData* data,
                           const Machine& machine, const std::vector<LengthForm>& lengths) {
  return PlanParts(options, forward, data, Evaluates(data), machine, lengths);
}

Result<PlannedJob> PlanTrainingOnly(const TrainOptions& options, const Graph& forward,
                                    const Machine& machine) {
  return PlanParts(options, forward, /*data=*/nullptr, /*with_eval=*/false, machine,
                   /*lengths=*/{});
}

double FormSeconds(const PlannedJob& job, const Program& program, int form,
                   double (*seconds_of)(const StepPlan&)) {
  if (program.pipeline != nullptr) return PipelineUpdateSeconds(program, seconds_of);
  if (job.lengths.empty()) return UpdateSeconds(program, job.options.accumulate, seconds_of);
  return seconds_of(*program.Find(job.lengths[static_cast<size_t>(form)].step));
}

double MeanUpdateSeconds(const PlannedJob& job, const Program& program,
                         double (*seconds_of)(const StepPlan&)) {
  double seconds = 0, batches = 0;
  for (size_t form = 0; form < job.lengths.size(); ++form) {
    const auto count = static_cast<double>(job.lengths[form].batches);
    seconds += count * FormSeconds(job, program, static_cast<int>(form), seconds_of);
    batches += count;
  }
  if (batches > 0) return seconds / batches;
  return FormSeconds(job, program, static_cast<int>(job.lengths.size()) - 1, seconds_of);
}

namespace {

// Where sums run in line all that they take is exposed.
void CountSums(const Program& program, PlannedJob& job) {
  if (!job.communication) return;
  PlanCommunication& of = *job.communication;
  of.exposed_s = MeanUpdateSeconds(job, program, SumSeconds);
  of.busy_s = std::max(of.busy_s, of.exposed_s);
}

}  // namespace

void EstimateJob(const JobData* data, int64_t runtime_bytes, const Program& program,
                 PlannedJob& job) {
  job.memory = EstimateMemory(program, runtime_bytes, job.data_bytes);
  job.step_s = MeanUpdateSeconds(job, program);
  job.modelled_step_s = MeanUpdateSeconds(job, program, ModelledSeconds);
  CountSums(program, job);
  if (job.offload) {
    job.memory = WithWindows(std::move(job.memory), *job.offload);
    job.step_s = SecondsBesideTransfers(job.step_s, *job.offload);
    job.modelled_step_s = SecondsBesideTransfers(job.modelled_step_s, *job.offload);
  }
  for (PlanLength& of : job.lengths) {
    of.step_s = PlannedSeconds(*program.Find(of.step));
    of.modelled_step_s = ModelledSeconds(*program.Find(of.step));
  }
  if (data == nullptr) return;
  const auto beside = [&](double compute_s, int64_t samples, double read_s) {
    return SecondsBesideReading(compute_s, job.threads, static_cast<double>(samples) * read_s,
                                data->workers, job.cores);
  };
  // Each of several ranks reads the rows of its slices.
  const std::optional<SliceShare> share = SampleShareOf(program);
  const int64_t batch = share ? share->OwnedSamples(job.options.batch).count() : job.options.batch;
  if (const StepPlan* eval = program.Find("eval"); eval != nullptr && data->eval_set() != nullptr) {
    const int64_t batches = CeilDiv(data->eval_set()->size(), job.options.batch);
    job.eval_s =
        static_cast<double>(batches) * beside(PlannedSeconds(*eval), batch, data->eval_read_s);
  }
  const int64_t samples = batch * job.options.accumulate;
  job.modelled_step_s = beside(job.modelled_step_s, samples, data->train_read_s);
  const double step_s =
      job.reads_beside ? job.step_s : beside(job.step_s, samples, data->train_read_s);
  job.epoch_s = step_s * static_cast<double>(data->steps_per_epoch) + job.eval_s;
}

int64_t MeasuredRuntimeBytes(const Executor& executor, int64_t data_now, int64_t data_planned) {
  const ProcessMemory now = ReadProcessMemory();
  // Kernels allocate heap only while they run, so the resident bytes of now do not include it.
  const Memory& arena = executor.arena();
  const bool ours = arena.host_visible();  // else it is no memory of the process
  const int64_t beside = now.resident_bytes - (ours ? arena.resident_bytes() : 0) - data_now +
                         HeapBytes(executor.program());
  const int64_t reached = now.peak_resident_bytes - (ours ? arena.bytes() : 0) - data_planned;
  return std::max({beside, reached, int64_t{0}});
}

int64_t PlannedInputBytes(const PlannedJob& job) {
  for (const auto& [purpose, bytes] : job.memory.breakdown) {
    if (purpose == PurposeName(Purpose::kInputs)) return bytes;
  }
  return 0;
}

PlanSummary SummarizeJob(const PlannedJob& job, const Program& program) {
  PlanSummary summary = SummarizePlan(program, job.memory, job.options.batch,
                                      job.options.accumulate, job.limit_bytes);
  if (job.epoch_s > 0) summary.epoch_s = job.epoch_s;
  summary.range = job.range;
  summary.offload = job.offload;
  summary.read_workers = job.read_workers;
  summary.pipeline_cap_bytes = job.pipeline_cap_bytes;
  summary.candidates = job.candidates;
  summary.lengths = job.lengths;
  summary.communication = job.communication;
  summary.step_s = job.step_s;
  summary.modelled_step_s = job.modelled_step_s;
  return summary;
}

// Half the batch with twice the accumulation is the same update with about half the activations;
// batches of several lengths are not accumulated.
Refusal RefusalOf(const PlannedJob& job) {
  Refusal refusal = {.device = job.device,
                     .memory = job.memory,
                     .limit_bytes = job.limit_bytes,
                     .limit_name = job.limit_name,
                     .used_before = job.used_before};
  if (job.options.batch < 2 || !job.lengths.empty()) return refusal;
  refusal.smaller.push_back(
      {.flags = fmt::format("--batch {} --accumulate {}", job.options.batch / 2,
                            job.options.accumulate * 2),
       .effect = "the same update in less memory"});
  return refusal;
}

Status CheckFits(const PlannedJob& job) {
  return job.fits() ? Status() : DoesNotFit(RefusalOf(job));
}

namespace {

std::string LayoutsText(const std::vector<LayoutId>& layouts) {
  std::string text;
  for (const LayoutId layout : layouts) text += fmt::format("{} ", layout);
  return text;
}

// What the bits of a node follow from.  A group has those of its updates, each by itself.
std::vector<std::string> ChoiceTexts(const StepPlan& step, const PlannedNode& node,
                                     bool one_thread) {
  const KernelChoice& choice = node.choice;
  const std::string kernel = KernelOfOneUpdate(choice.kernel);
  if (kernel.empty()) {
    return {fmt::format("{}\n{}\n{}\n{}{}{}", step.name, node.name, choice.kernel,
                        one_thread ? "one thread\n" : "",  // sums in another order
                        LayoutsText(choice.input_layouts), LayoutsText(choice.output_layouts))};
  }
  const UpdateGroup& group = GroupOf(*node.def);
  const size_t operands = group.InputsOf(node.call) + group.outputs;
  const std::string layouts = LayoutsText(std::vector<LayoutId>(operands, kRowMajor));
  std::vector<std::string> texts;
  for (size_t at = 0; at < group.CountOf(node.call); ++at) {
    const auto result = static_cast<size_t>(node.outputs[group.Output(at, 0)]);
    texts.push_back(
        fmt::format("{}\n{}\n{}\n{}", step.name, step.values[result].name, kernel, layouts));
  }
  return texts;
}

}  // namespace

std::string HashKernelChoices(const Program& program) {
  if (program.pipeline != nullptr) return program.pipeline->kernels_sha256;
  Sha256 hash;
  if (program.place) hash.Add(fmt::format("mesh {}\n", MeshText(program.place->mesh)));
  for (const StepPlan& step : program.steps) {
    // Of a tree the same on any number of ranks.
    if (step.tree) hash.Add(fmt::format("{} slices in a tree\n", step.tree->share.slices));
    if (step.tree && !step.tree->narrow.empty()) hash.Add("rounded to bf16\n");
    if (!step.tree && step.slices > 1) hash.Add(fmt::format("{} slices\n", step.slices));
    const std::vector<NodePlace> places = NodePlaces(step);
    std::vector<std::string> nodes;
    for (size_t n = 0; n < step.nodes.size(); ++n) {
      const PlannedNode& node = step.nodes[n];
      if (IsTreeNode(node)) continue;
      for (std::string& text : ChoiceTexts(step, node, places[n].parallel >= 0))
        nodes.push_back(std::move(text));
    }
    // Their order says nothing of bits: where exchanges overlap it is another one.
    std::sort(nodes.begin(), nodes.end());
    for (const std::string& node : nodes) hash.Add(node);
  }
  return hash.Hex();
}

}  // namespace ridge
