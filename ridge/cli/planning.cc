#include "ridge/cli/planning.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/core/process.h"
#include "ridge/core/units.h"
#include "ridge/core/version.h"
#include "ridge/graph/keep_f32.h"
#include "ridge/learn/precision_for.h"
#include "ridge/train/job/rehearsed_job.h"
#include "ridge/train/load/folder_options.h"
#include "ridge/train/load/length_forms.h"
#include "ridge/train/load/model_source.h"

namespace ridge::cli {
namespace {

// The job with another batch.  nullopt when the graph is written for one batch only.
std::optional<PlannedJob> PlanOtherBatch(const PlannedJob& job, int64_t batch, int64_t accumulate,
                                         const Machine& machine) {
  TrainOptions options = job.options;
  options.batch = batch;
  options.accumulate = accumulate;
  if (!machine.software.eager) {  // else the program does neither
    options.slices = "auto";
    options.recompute = "auto";
    options.loss_chunks = "auto";
  }
  Result<PlannedJob> other = PlanWith(options, job, machine);
  if (!other.ok()) return std::nullopt;
  return std::move(*other);
}

// Nothing for a job that was rehearsed: measured times do not compare with those of a plan.
std::string StepEffect(const PlannedJob& job, const PlannedJob& other) {
  if (job.program.steps.empty()) return "";
  const double samples = static_cast<double>(job.options.batch * job.options.accumulate);
  const double others = static_cast<double>(other.options.batch * other.options.accumulate);
  if (job.step_s <= 0 || other.step_s <= 0) return "";
  return fmt::format("time a sample {}",
                     FormatPercentChange(other.step_s / others / (job.step_s / samples) - 1));
}

// The largest batch below the job's that fits, by repeated halving; with `keep_update` accumulation
// doubles with each halving.
std::optional<SmallerRun> FindSmaller(const PlannedJob& job, bool keep_update,
                                      const Machine& machine) {
  int64_t parts = 2;
  for (int64_t batch = job.options.batch / 2; batch >= 1; batch /= 2, parts *= 2) {
    const int64_t accumulate = job.options.accumulate * (keep_update ? parts : 1);
    const auto other = PlanOtherBatch(job, batch, accumulate, machine);
    if (!other) return std::nullopt;
    if (!other->fits()) continue;
    std::string flags = fmt::format("--batch {}", batch);
    if (accumulate > 1) flags += fmt::format(" --accumulate {}", accumulate);
    return SmallerRun{flags, other->memory.needed_bytes(), StepEffect(job, *other)};
  }
  return std::nullopt;
}

}  // namespace

Status CheckModel(const TrainOptions& options) {
  if (IsOnnxFile(options.model)) return CheckModelFile(options.model);  // large: read only once
  return LoadModel({.model = options.model, .batch = options.batch}).status();
}

Result<PlannedRun> PlanRun(const TrainOptions& given, const Machine& machine) {
  TrainOptions options = given;
  std::vector<std::string> folder_notes;
  RIDGE_RETURN_IF_ERROR(TakeModelFolder(options, &folder_notes));
  RIDGE_RETURN_IF_ERROR(CheckPlanOptions(options));
  RIDGE_ASSIGN_OR_RETURN(Forward forward, LoadForward(options));
  PlannedRun run;
  run.notes = std::move(forward.notes);
  run.notes.notes.insert(run.notes.notes.begin(), folder_notes.begin(), folder_notes.end());
  RIDGE_ASSIGN_OR_RETURN(const std::vector<LengthForm> lengths, LoadLengthForms(options, forward));
  if (!options.data.empty()) {
    RIDGE_ASSIGN_OR_RETURN(run.data, OpenJobData(options, forward.graph, forward.facts,
                                                 forward.data, forward.preprocessing, lengths));
  }
  const JobData* data = run.data ? &*run.data : nullptr;
  RIDGE_ASSIGN_OR_RETURN(run.job, PlanJob(options, forward.graph, data, machine, lengths));
  if (!run.job.fits() || !machine.is_here()) return run;
  RIDGE_ASSIGN_OR_RETURN(const auto executor, RehearseJob(machine, data, {}, run.job));
  run.job.program = std::move(executor->mutable_program());
  return run;
}

void LeaveAsWritten(TrainOptions& options) {
  const TrainOptions usual;
  if (options.recompute == usual.recompute) options.recompute = "off";
  if (options.slices == usual.slices) options.slices = "1";
  LeaveLossWhole(options);
}

void LeaveLossWhole(TrainOptions& options) {
  if (options.loss_chunks == TrainOptions().loss_chunks) options.loss_chunks = "1";
}

Result<PlannedJob> PlanWith(const TrainOptions& options, const PlannedJob& job,
                            const Machine& machine) {
  RIDGE_ASSIGN_OR_RETURN(const Forward forward, LoadForward(options));
  RIDGE_ASSIGN_OR_RETURN(PlannedJob other,
                         PlanJob(options, forward.graph, /*data=*/nullptr, machine));
  other.memory.peak_bytes += job.data_bytes;
  other.limit_bytes = job.limit_bytes;
  return other;
}

std::string ModelNotesText(const ModelNotes& notes, bool verbose) {
  std::string text;
  const auto add_line = [&](const std::string& line) { text += (text.empty() ? "" : "\n") + line; };
  for (const std::string& line : notes.unreached) add_line(line);
  for (const std::string& line : notes.drawn) add_line(line);
  if (verbose) {
    for (const std::string& note : notes.notes) add_line(note);
    for (const std::string& name : notes.fixed) add_line(fmt::format("not trained: {}", name));
    return text;
  }
  const bool one_fixed = notes.fixed.size() == 1;
  if (!notes.fixed.empty())
    add_line(fmt::format("{} {} not trained (-v names {})",
                         FormatCountOf(static_cast<int64_t>(notes.fixed.size()), "tensor"),
                         one_fixed ? "is" : "are", one_fixed ? "it" : "them"));
  if (!notes.notes.empty())
    add_line(fmt::format("{} on the model (-v prints {})",
                         FormatCountOf(static_cast<int64_t>(notes.notes.size()), "note"),
                         notes.notes.size() == 1 ? "it" : "them"));
  return text;
}

namespace {

// " by reference (2 threads)"
std::string HostText(const TrainOptions& options, const Machine& machine) {
  const std::string& name = machine.backend->name();
  const std::string by = name == options.device ? "" : " by " + name;
  return fmt::format("{} ({})", by, FormatCountOf(machine.backend->threads(), "thread"));
}

bool IsKept(const PlannedNode& node) { return KeepsF32(node.call.attrs); }
bool IsNarrowed(const PlannedNode& node) {
  return HasNarrowResult(node.call.attrs) && BytesPerElement(node.call.outputs[0].dtype) == 2;
}

// "3 products of a step"
std::string MarkedText(const Program& program, bool (*is_marked)(const PlannedNode&)) {
  int64_t count = 0;
  for (const StepPlan& step : program.steps) {
    if (step.name != "train" && step.name != "micro") continue;
    count += std::count_if(step.nodes.begin(), step.nodes.end(), is_marked);
  }
  return FormatCountOf(count, "product") + " of a step";
}

// A line for patterns of f32, and one for those of the run's own type; nothing without
// --precision-for, or in f32.
std::string MarkedProductsText(const PlannedJob& job, const Program& program) {
  if (job.options.precision_for.empty() || job.operands == DType::kF32) return "";
  const auto patterns = ParsePrecisionFor(job.options.precision_for, job.options.precision);
  if (!patterns.ok()) return "";
  const auto any_of = [&](bool keeps_f32) {
    return std::any_of(patterns->begin(), patterns->end(),
                       [&](const PrecisionFor& one) { return one.keeps_f32 == keeps_f32; });
  };
  std::string text;
  if (any_of(true)) text += "\n  kept in f32 by --precision-for: " + MarkedText(program, IsKept);
  if (any_of(false))
    text += fmt::format("\n  results in {} by --precision-for: {}", DTypeName(job.operands),
                        MarkedText(program, IsNarrowed));
  return text;
}

std::string ProfileText(const Machine& machine) {
  if (!machine.in_host_memory()) return "\n  modelled by an H100's numbers; kernels are timed here";
  if (IsTrusted(machine.profile)) return "";
  return "\n  by a rough profile: " + DistrustReason(machine.profile);
}

}  // namespace

namespace {

// Of products, by the name of its option: "tf32".
std::string PrecisionOf(const PlannedJob& job) {
  const std::string& given = job.options.precision;
  return given == "auto" ? DTypeName(job.operands) : given;
}

}  // namespace

std::string PlanTitle(const PlannedJob& job, const Program& program, const Machine& machine) {
  const TrainOptions& options = job.options;
  std::string title = fmt::format("{}, batch {}", options.model, options.batch);
  if (options.accumulate > 1) title += fmt::format(" x {}", options.accumulate);
  if (options.slices != "1") title += fmt::format(" in {} slices", options.slices);
  if (options.loss_chunks != "1") title += fmt::format(", loss in {} chunks", options.loss_chunks);
  if (options.recompute.starts_with("full")) {
    title += ", recomputing products too";
  } else if (options.recompute == "all") {
    title += ", recomputing";
  } else if (options.recompute != "off") {
    title += fmt::format(", recomputing {} values", options.recompute);
  }
  const std::string step = job.facts.has_optimizer ? "its own step" : options.optimizer.name;
  title += fmt::format(", {}, {}, on {}", step, PrecisionOf(job), options.device);
  if (!machine.is_here()) {
    title += fmt::format(" (not here: modelled from {})", machine.known_from);
    title += MarkedProductsText(job, program);
    if (machine.software.id == kOwnSoftware) return title;
    const char* memory =
        machine.software.memory_scale > 0 ? " and memory of {}" : " of {}; memory of ridge";
    return title + "\n  seconds" + fmt::format(fmt::runtime(memory), machine.software.name);
  }
  title += machine.in_host_memory() ? HostText(options, machine)
                                    : fmt::format(" ({})", machine.profile.name);
  title += MarkedProductsText(job, program);
  if (job.keeps_many)
    title +=
        "\n  keeps its activations: recomputing them would take too much of so short a step "
        "(--recompute all: least memory)";
  return title + ProfileText(machine);
}

Receipt ReceiptOf(const PlannedJob& job, const Machine& machine) {
  Receipt receipt;
  receipt.made_at = UtcText(WallSeconds());
  receipt.ridge_version = kRidgeVersion;
  receipt.device = machine.profile.id;
  receipt.model = job.options.model;
  receipt.precision = PrecisionOf(job);
  receipt.batch = job.options.batch;
  receipt.accumulate = job.options.accumulate;
  receipt.threads = job.threads;
  receipt.ranks = machine.ranks;
  return receipt;
}

std::optional<ExpectedStep> ExpectedStepOf(const PlannedJob& job, const Machine& machine,
                                           const PlanSummary& plan) {
  if (!machine.is_here()) return std::nullopt;
  const Result<std::vector<Receipt>> receipts = LoadReceipts();
  if (!receipts.ok()) return std::nullopt;
  const std::optional<ReceiptGroup> group = FindGroup(*receipts, ReceiptOf(job, machine));
  return group ? std::optional(ExpectedBy(*group, plan)) : std::nullopt;
}

RunNumbers NumbersOf(const RunFigures& figures) {
  return {figures.peak_bytes,      figures.arena_bytes, figures.step_s,          figures.epoch_s,
          figures.modelled_step_s, figures.input_bytes, figures.communication_s, figures.energy_j};
}

Status ExplainRefusal(const PlannedJob& job, const Machine& machine) {
  Refusal refusal = RefusalOf(job);
  refusal.smaller.clear();
  for (const bool keep_update : {true, false}) {
    if (keep_update && !job.lengths.empty()) continue;  // they are not accumulated
    if (auto smaller = FindSmaller(job, keep_update, machine)) refusal.smaller.push_back(*smaller);
  }
  return DoesNotFit(refusal);
}

}  // namespace ridge::cli
