// `ridge plan`: the plan of a training without running it.
#include <fmt/format.h>

#include "ridge/cli/config_file.h"
#include "ridge/cli/cuda_machine.h"
#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/levers.h"
#include "ridge/cli/output.h"
#include "ridge/cli/plan_history.h"
#include "ridge/cli/plan_layouts.h"
#include "ridge/cli/plan_pipeline.h"
#include "ridge/cli/plan_scaling.h"
#include "ridge/cli/plan_unequal.h"
#include "ridge/cli/plan_verb.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/files.h"
#include "ridge/core/split.h"
#include "ridge/report/determinism.h"
#include "ridge/report/padding_report.h"
#include "ridge/report/plan_page.h"
#include "ridge/report/precision_report.h"
#include "ridge/report/profile.h"
#include "ridge/report/rules_of_thumb.h"
#include "ridge/train/job/pipeline_job.h"
#include "ridge/train/load/folder_options.h"
#include "ridge/train/loop/read_loss_scaling.h"
#include "ridge/train/options/option_table.h"

namespace ridge::cli {
namespace {

// With --why: the plans that were compared, what is live when, rules of thumb, what options would
// bring, what equal bits cost, what stays f32, and what is padded, not a kernel.
constexpr const char* kSlices = "slices";
constexpr const char* kMemory = "memory";
constexpr const char* kRules = "rules";
constexpr const char* kLevers = "levers";
constexpr const char* kDeterminism = "determinism";
constexpr const char* kPrecision = "precision";
constexpr const char* kPadding = "padding";

Result<std::vector<std::string>> Devices(const PlanVerb& verb) {
  if (!verb.on) return std::vector<std::string>{verb.train.options.device};
  std::vector<std::string> devices;
  for (const std::string_view device : SplitAt(*verb.on, ',')) devices.emplace_back(device);
  return devices;
}

void PrintJson(const std::vector<DevicePlan>& plans, const PlanVerb& verb) {
  std::vector<PlanSummary> summaries;
  for (const DevicePlan& plan : plans) summaries.push_back(SummaryByHistory(plan, verb));
  PrintData((verb.on ? PlansToJson(summaries) : PlanToJson(summaries.front())) + "\n");
}

// What the page says of the device of a plan.
PlanOnPage OnPage(const DevicePlan& plan, const PlanVerb& verb) {
  const Machine& machine = plan.opened.machine;
  PlanOnPage page;
  page.title = PlanTitle(plan.run.job, plan.run.job.program, machine);
  const size_t end = page.title.find("\n  ");
  if (end != std::string::npos) {  // what follows the first line is a note
    page.note = page.title.substr(end + 3);
    page.title.resize(end);
  }
  page.plan = SummaryByHistory(plan, verb);
  page.peak_flops_per_s = machine.is_here() ? PeakFlopsOf(machine.profile, plan.run.job.operands)
                                            : machine.peak_flops_per_s;
  if (!machine.profile.memory.empty()) page.bytes_per_s = machine.profile.memory.back().bytes_per_s;
  page.sources.push_back(machine.is_here()
                             ? fmt::format("device profile {}, measured {}", machine.profile.id,
                                           machine.profile.made_at)
                             : "device: " + machine.known_from);
  return page;
}

std::vector<PlanOnPage> Pages(const std::vector<DevicePlan>& plans, const PlanVerb& verb) {
  std::vector<PlanOnPage> pages;
  for (const DevicePlan& plan : plans) pages.push_back(OnPage(plan, verb));
  return pages;
}

void PrintReports(const std::vector<DevicePlan>& plans, const PlanVerb& verb,
                  const Terminal& terminal) {
  for (size_t i = 0; i < plans.size(); ++i) {
    const DevicePlan& plan = plans[i];
    const std::string title = PlanTitle(plan.run.job, plan.run.job.program, plan.opened.machine);
    if (i > 0) PrintData("\n");
    if (const std::string notes = ModelNotesText(plan.run.notes, verb.output.verbose);
        !notes.empty() && !verb.output.quiet)
      PrintData(notes + "\n\n");
    const PlanSummary summary = SummaryByHistory(plan, verb);
    PrintData(verb.output.verbose ? PlanText(title, summary, plan.opened.machine.query())
                                  : PlanReport(title, summary, terminal));
  }
}

bool IsAbout(const PlannedNode& node, const std::string& what) {
  return node.op == what || node.name == what;
}

// The kernel of each node of this operator or name, and why the better ones declined.
std::string WhyText(const Program& program, const std::string& what) {
  std::string text;
  for (const StepPlan& step : program.steps) {
    for (const PlannedNode& node : step.nodes) {
      if (!IsAbout(node, what)) continue;
      text += fmt::format("{} '{}' ({}): {}\n", step.name, node.name, node.op, node.choice.kernel);
      for (const KernelRefusal& refusal : node.refusals) {
        text += fmt::format("  not {}: {}\n", refusal.kernel, refusal.reason);
      }
    }
  }
  return text;
}

// cuDNN offers a GPU that is here deterministic engines alone: what is on record of its kind tells
// the others.
Result<std::string> DeterminismOf(const DevicePlan& plan, const PlanVerb& verb,
                                  const Terminal& terminal) {
  std::optional<std::string> kind;
  if (plan.opened.machine.is_here() && OtherEnginesUntold(plan.run.job.program))
    kind = CatalogIdOf(plan.opened);
  if (!kind) return DeterminismReport(Summary(plan), terminal);
  PlanVerb of_kind = verb;
  of_kind.on = kind;
  RIDGE_ASSIGN_OR_RETURN(const int64_t count, ParseDevices(verb.train.options.devices));
  const Result<DevicePlan> known = PlanOn(*kind, of_kind, count, BatchOf(verb.train, count));
  return DeterminismReport(Summary(known.ok() ? *known : plan), terminal);
}

// What --why asks of a plan; an empty text where it has no such operator or node.
Result<std::string> WhyReport(const DevicePlan& plan, const PlanVerb& verb,
                              const Terminal& terminal) {
  const std::string& what = *verb.why;
  if (what == kSlices) return CandidatesReport(Summary(plan), terminal);
  if (what == kMemory) return PhasesReport(Summary(plan), terminal);
  if (what == kRules) return RulesReport(Summary(plan), terminal);
  if (what == kDeterminism) return DeterminismOf(plan, verb, terminal);
  const RewriteRules& rules = plan.opened.machine.query().rules();
  if (what == kPrecision)
    return PrecisionReport(Summary(plan), plan.run.job.operands, rules, terminal);
  if (what == kPadding) return PaddingReport(Summary(plan), rules, terminal);
  if (what == kLevers) return LeversReport(plan.run.job, plan.opened.machine, terminal);
  return WhyText(plan.run.job.program, what);
}

Status PrintWhy(const std::vector<DevicePlan>& plans, const PlanVerb& verb,
                const Terminal& terminal) {
  for (const DevicePlan& plan : plans) {
    RIDGE_ASSIGN_OR_RETURN(const std::string text, WhyReport(plan, verb, terminal));
    if (text.empty()) {
      return InvalidArgument(
          fmt::format("--why is '{}'; the plan has no such operator or node. hint: -v "
                      "lists them",
                      *verb.why));
    }
    PrintData(text);
  }
  return {};
}

Status PrintPlans(const std::vector<DevicePlan>& plans, const PlanVerb& verb,
                  const Terminal& terminal) {
  if (verb.html)
    RIDGE_RETURN_IF_ERROR(WriteFileAtomically(*verb.html, PlanPage(Pages(plans, verb))));
  if (IsStandardOutput(verb.html)) return {};
  if (verb.why) return PrintWhy(plans, verb, terminal);
  if (verb.markdown) {
    PrintData(PlanMarkdown(Pages(plans, verb)));
  } else if (verb.json) {
    PrintJson(plans, verb);
  } else {
    PrintReports(plans, verb, terminal);
  }
  return {};
}

// The stages of a pipeline, on one kind of device.
Status RunPipelinePlan(const PlanVerb& verb, const TrainOptions& options, const Mesh& mesh,
                       const Terminal& terminal) {
  if (verb.mesh.shard)
    return InvalidArgument("--shard is of the axes d and t. hint: leave it out beside --mesh p=N");
  const bool is_here = options.device == "cpu" || IsRecord(options.device);
  RIDGE_ASSIGN_OR_RETURN(const OpenedMachine opened,
                         OpenFor(verb, options, is_here ? 1 : mesh.devices()));
  return PrintPipelinePlan(options, mesh, verb.pipeline, opened.machine, verb.json, terminal);
}

// What a training on the mesh would refuse.
Status CheckTraining(const PlanVerb& verb, const Mesh& mesh) {
  TrainOptions options = verb.train.options;
  options.mesh = MeshText(mesh);
  options.shard = verb.mesh.shard.value_or("");
  options.pipeline = verb.pipeline.value_or("");
  RIDGE_RETURN_IF_ERROR(TakeModelFolder(options));
  return CheckPlanOptions(std::move(options));
}

// One rank of a mesh, on a cluster or on one kind of device.
Result<int> RunMeshPlan(const PlanVerb& verb, const Terminal& terminal) {
  TrainOptions options = verb.train.options;
  RIDGE_ASSIGN_OR_RETURN(const MeshTarget target,
                         ParseMeshTarget(verb.on.value_or(options.device)));
  options.device = target.device;
  RIDGE_RETURN_IF_ERROR(CheckModel(options));
  const bool composed = IsComposed(verb.mesh, options, target);
  Mesh mesh;  // a composed layout has its own
  if (!composed) {
    RIDGE_ASSIGN_OR_RETURN(mesh, ParseMesh(*verb.mesh.mesh));
    if (!verb.on) RIDGE_RETURN_IF_ERROR(CheckTraining(verb, mesh));
  }
  const bool has_stages = mesh.Find(kPipelineAxis) >= 0;
  if (options.offload != "none" && (composed || has_stages)) {
    return InvalidArgument(
        fmt::format("--offload {}: of a mesh the axes d and t are planned with it, one layout at a "
                    "time. hint: --mesh d=8 --shard zero2",
                    options.offload));
  }
  if (has_stages) {
    RIDGE_RETURN_IF_ERROR(RunPipelinePlan(verb, options, mesh, terminal));
    return kExitOk;
  }
  if (verb.pipeline) {
    return InvalidArgument(
        fmt::format("mesh {} is not p alone, whose stages --pipeline orders. hint: --mesh p=4",
                    *verb.mesh.mesh));
  }
  RIDGE_ASSIGN_OR_RETURN(const OpenedMachine opened, OpenFor(verb, options, /*devices=*/1));
  const Hardware* hardware = opened.hardware.get();
  if (hardware != nullptr && IsCpu(*hardware)) hardware = nullptr;  // nothing is known of its links
  if (!composed) {
    RIDGE_RETURN_IF_ERROR(
        PrintMeshPlan(options, verb.mesh, target, hardware, opened.machine, verb.json, terminal));
    return kExitOk;
  }
  if (hardware == nullptr) {
    return InvalidArgument(
        "--mesh auto, stages beside other axes and recomputing on a mesh are planned for devices "
        "whose links are known. hint: --on dgx-h100");
  }
  RIDGE_ASSIGN_OR_RETURN(const int64_t devices, ParseDevices(options.devices));
  RIDGE_RETURN_IF_ERROR(PrintLayouts(options, verb.mesh, target, *hardware, devices, opened.machine,
                                     verb.json, terminal));
  return kExitOk;
}

// Unequal devices that share the batch.
Status RunTeamPlan(const PlanVerb& verb, const std::vector<DeviceCount>& team,
                   const Terminal& terminal) {
  const std::pair<const char*, bool> others[] = {
      {"--devices", verb.train.Has("devices")}, {"--shares", verb.train.Has("shares")},
      {"--wire", verb.train.Has("wire")},       {"--slices", verb.train.Has("slices")},
      {"--data", verb.train.Has("data")},       {"--why", verb.why.has_value()},
      {"--html", verb.html.has_value()},        {"--markdown", verb.markdown}};
  for (const auto& [flag, is_given] : others) {
    if (!is_given) continue;
    return InvalidArgument(
        fmt::format("{} is not for --on {}, whose devices share a batch. hint: leave {} out", flag,
                    *verb.on, flag));
  }
  return PrintUnequal(verb, team, terminal);
}

// Options of a GPU that is here.
Status CheckPlannedGpu(const PlanVerb& verb) {
  if (!verb.on) return Status();
  Status status;
  ForEachOption([&](const OptionInfo& option, auto) {
    if (option.group != OptionGroup::kGpu || !verb.train.Has(option.key) || !status.ok()) return;
    status = InvalidArgument(
        fmt::format("--{} is of a GPU that is here, and --on plans for '{}'. hint: {}", option.key,
                    *verb.on, option.key == "device-memory" ? "--fit SIZE" : "leave it out"));
  });
  return status;
}

Result<int> RunPlan(const CLI::App& app, const PlanVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, verb.output));
  RIDGE_RETURN_IF_ERROR(CheckPlannedGpu(verb));
  RIDGE_RETURN_IF_ERROR(OneOnStandardOutput({{"--json", verb.json},
                                             {"--markdown", verb.markdown},
                                             {"--html", IsStandardOutput(verb.html)}}));
  if (verb.history) {
    RIDGE_RETURN_IF_ERROR(PrintHistory(verb.json, terminal));
    return kExitOk;
  }
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.train.Has("model"), "MODEL",
                                        "`ridge models` lists the built-in ones"));
  if (verb.mesh.shard && !verb.mesh.mesh)
    return InvalidArgument("--shard needs the axes of --mesh. hint: --mesh d=2,t=2");
  if (verb.scaling && verb.why != kWhyDevices)
    return InvalidArgument("--scaling is of --why devices. hint: --why devices");
  if (verb.pipeline && !verb.mesh.mesh)
    return InvalidArgument("--pipeline needs the axis p of --mesh. hint: --mesh p=4");
  if (verb.mesh.mesh) return RunMeshPlan(verb, terminal);
  if (verb.why == kWhyDevices || verb.why == kWhySums) {
    if (verb.html || verb.markdown) {
      return InvalidArgument(fmt::format(
          "--why {} is a table or --json. hint: leave --html and --markdown out", *verb.why));
    }
    RIDGE_RETURN_IF_ERROR(verb.why == kWhySums ? PrintSums(verb, terminal)
                                               : PrintScaling(verb, terminal));
    return kExitOk;
  }
  if (const std::vector<DeviceCount> team = ParseTeam(verb.on.value_or("")); !team.empty()) {
    RIDGE_RETURN_IF_ERROR(RunTeamPlan(verb, team, terminal));
    return kExitOk;
  }
  RIDGE_ASSIGN_OR_RETURN(const std::vector<std::string> devices, Devices(verb));
  RIDGE_ASSIGN_OR_RETURN(const int64_t count, ParseDevices(verb.train.options.devices));
  std::vector<DevicePlan> plans;
  for (const std::string& device : devices) {
    RIDGE_ASSIGN_OR_RETURN(DevicePlan plan,
                           PlanOn(device, verb, count, BatchOf(verb.train, count)));
    plans.push_back(std::move(plan));
  }
  if (const std::string doubt = ConstantScaleDoubt(verb.train.options); !doubt.empty())
    PrintWarning(doubt);
  RIDGE_RETURN_IF_ERROR(PrintPlans(plans, verb, terminal));
  for (const DevicePlan& plan : plans) {
    if (!plan.run.job.fits()) return ExplainRefusal(plan.run.job, plan.opened.machine);
  }
  return kExitOk;
}

}  // namespace

VerbBody AddPlan(CLI::App& app) {
  auto verb = std::make_shared<PlanVerb>();
  AddTrainFlags(app, verb->train);
  AddDevicesFlags(app, verb->train,
                  "How many devices train together: the plan of the first of them (1)");
  AddOptions(app, verb->train, {"shares", "wire"});
  AddText(app, "--on", verb->on, "DEVICE[:N][,DEVICE]",
          "Devices to plan for: cpu (this machine), those of `ridge devices`, or a file of "
          "`ridge bench device --record`; with --mesh and --why devices also clusters of `ridge "
          "devices clusters`; with numbers, a100-sxm4-40g:1,t4:1: unequal ones that share a batch, "
          "and how")
      ->group("Machine");
  AddText(app, "--foreign", verb->foreign, "torch|torch-channels-last|tf",
          "Time of another program on the devices of --on, as published trainings had it")
      ->group("Machine");
  CLI::Option* mesh = AddText(
      app, "--mesh", verb->mesh.mesh, "d=N,t=N|p=N|auto",
      "Plan a rank of many devices, a grid with the axes d (shares the batch of --batch) and t "
      "(shares the weights of attention and MLP): parameters, gradients, optimizer, collectives; "
      "p: the stages of a pipeline, with --accumulate micro batches; p beside others: by formula; "
      "auto: the fastest layouts of --devices that fit");
  mesh->group("Machine");
  AddText(app, "--shard", verb->mesh.shard, "KIND[,KIND]",
          "On a --mesh: zero1, zero2 or zero3 stores optimizer states, sums of gradients, "
          "parameters in parts along d; sequence cuts tokens along t")
      ->group("Machine");
  AddText(app, "--pipeline", verb->pipeline, "SCHEDULE",
          "On a --mesh p=N: the order of forwards and backwards: gpipe, 1f1b (the default), "
          "interleaved:CHUNKS (so many a device) or zero-bubble")
      ->group("Machine");
  CLI::Option* why =
      AddText(app, "--why", verb->why, "OP",
              "Which kernels run an operator or node, and why not others; slices: the plans "
              "that were compared; memory: what is live in each phase of a step; rules: "
              "rules of thumb beside the plan; levers: what other options would bring; "
              "determinism: what equal bits in every run cost on a device of --on; precision: "
              "which nodes stay f32, and why; padding: what padded columns and channels cost; "
              "devices: what more devices would bring, N or 1,2,4 of --devices, on those of --on "
              "and on its "
              "clusters, with the best layout of each number; sums: an all-reduce of their "
              "gradients beside a parameter server");
  why->group(kOutputGroup);
  AddChoice(app, "--scaling", verb->scaling, {"strong", "weak", "both"},
            "With --why devices: the same batch on more devices, the same on each, or both (both)")
      ->group(kOutputGroup);
  CLI::Option* json = AddSwitch(app, "--json", verb->json, "Print JSON; with --on an array");
  json->group(kOutputGroup);
  CLI::Option* html =
      AddText(app, "--html", verb->html, "FILE",
              "Write a page: verdict, memory over the step, roofline, time, sources");
  html->group(kOutputGroup);
  CLI::Option* markdown = AddSwitch(app, "--markdown", verb->markdown, "Print tables as Markdown");
  markdown->group(kOutputGroup);
  Exclude(json, markdown);
  for (CLI::Option* other : {why, html, markdown}) Exclude(mesh, other);
  AddSwitch(app, "--history", verb->history,
            "Print what runs on this machine were planned to take and took, and how that scales "
            "the next plan; needs no MODEL")
      ->group(kOutputGroup);
  AddReceiptsFlag(app, verb->output);
  AddColorFlag(app, verb->output);
  AddQuietFlags(app, verb->output);
  AddConfigFlag(app);
  return [&app, verb] { return RunPlan(app, *verb); };
}

}  // namespace ridge::cli
