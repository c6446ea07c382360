// `ridge bench step`: times training steps on one random batch, beside the plan and the roofline.
#include "ridge/measure/bench_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/machine.h"
#include "ridge/cli/output.h"
#include "ridge/cli/planning.h"
#include "ridge/cli/rank_machine.h"
#include "ridge/cli/ranks.h"
#include "ridge/cli/start.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/units.h"
#include "ridge/report/device_bytes_report.h"
#include "ridge/report/plan_report.h"
#include "ridge/report/table.h"
#include "ridge/runtime/virtual_compute.h"

namespace ridge::cli {
namespace {

constexpr int64_t kSteps = 30;

struct BenchStepVerb {
  TrainFlags train;
  OutputFlags output;
  bool json = false;
};

Result<TrainOptions> BenchOptions(const TrainFlags& flags) {
  TrainOptions options = flags.options;
  RIDGE_ASSIGN_OR_RETURN(const int64_t devices, StartedDevices(options));
  options.batch = BatchOf(flags, devices);
  options.steps.reset();       // the bench counts its own
  options.data = "synthetic";  // what it makes the batch of
  return options;
}

void AddPeaks(const BenchResult& result, Table& table) {
  table.AddRow({"roofline", FormatSeconds(result.roofline_step_s)});
  table.AddRow({"FLOPs at the peak rate", FormatSeconds(result.flops_floor_s)});
  const double achieved = result.ms_med > 0 ? result.flops_floor_s / (result.ms_med / 1e3) : 0;
  table.AddRow({"model FLOPs utilization", FormatPercent(achieved)});
}

// "2 ranks of 4 threads, "; of GPUs no threads, which say nothing about their speed.
std::string WhereText(const BenchResult& result) {
  const std::string threads = FormatCountOf(result.threads, "thread");
  if (result.device_bytes) return result.ranks > 1 ? fmt::format("{} ranks, ", result.ranks) : "";
  return result.ranks > 1 ? fmt::format("{} ranks of {}, ", result.ranks, threads) : threads + ", ";
}

std::string BenchReport(const BenchResult& result, const Terminal& terminal) {
  Table table({{""}, {"", Align::kRight}});
  table.AddRow({"step, median", FormatSeconds(result.ms_med / 1e3)});
  table.AddRow({"step, fastest", FormatSeconds(result.ms_min / 1e3)});
  table.AddRow({"samples/s", FormatCount(result.samples_s)});
  table.AddRow({"first step after", FormatSeconds(result.first_step_s)});
  if (result.flops_floor_s > 0) AddPeaks(result, table);
  if (!result.virtual_compute) {
    table.AddRow({"loss, first and last", fmt::format("{:.4g} {:.4g}", result.loss0, result.loss)});
  }
  const char* notice = result.virtual_compute
                           ? "virtual compute: kernels slept as long as they are planned, and "
                             "computed nothing\n"
                           : "";
  return fmt::format("{}, batch {}, {}, {}, {}{} parameters\n{}\n", result.model, result.batch,
                     result.optimizer, result.precision, WhereText(result),
                     FormatCount(static_cast<double>(result.params)), notice) +
         table.ToText(terminal) + "\n" +
         ComparisonReport(NumbersOf(result.planned), NumbersOf(result.measured), terminal) +
         (result.device_bytes ? "\n" + DeviceBytesReport(*result.device_bytes, terminal) : "");
}

Result<OpenedMachine> OpenFor(const BenchStepVerb& verb, const TrainOptions& options,
                              MpiCommunicator* ranks) {
  const MachineChoice choice = ChoiceOf(verb.train, options);
  if (ranks != nullptr) return OpenRank(choice, options, *ranks, verb.output.quiet);
  return OpenMachine(choice, SayUnless(verb.output.quiet));
}

// `ranks`: null when this process is alone.
Result<int> Measure(const BenchStepVerb& verb, BenchRequest request, MpiCommunicator* ranks) {
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, verb.output));
  RIDGE_ASSIGN_OR_RETURN(const bool is_virtual, VirtualCompute::Asked());
  RIDGE_ASSIGN_OR_RETURN(OpenedMachine opened, OpenFor(verb, request.options, ranks));
  VirtualCompute compute;
  if (is_virtual) opened.machine.compute = &compute;
  // Ranks share the machine.
  if (ranks == nullptr && !is_virtual) request.measure_peaks = PeaksOf(opened);
  RIDGE_ASSIGN_OR_RETURN(const BenchResult result, BenchStep(request, opened.machine));
  if (ranks == nullptr || ranks->rank() == 0)
    PrintData(verb.json ? BenchToJson(result) + "\n" : BenchReport(result, terminal));
  return kExitOk;
}

Result<int> RunBenchStep(const CLI::App& app, const BenchStepVerb& verb) {
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.train.Has("model"), "MODEL",
                                        "`ridge models` lists the built-in ones"));
  BenchRequest request;
  RIDGE_ASSIGN_OR_RETURN(request.options, BenchOptions(verb.train));
  RIDGE_RETURN_IF_ERROR(CheckOptions(request.options));
  RIDGE_RETURN_IF_ERROR(CheckModel(request.options));
  request.steps = verb.train.options.steps.value_or(kSteps);
  RIDGE_ASSIGN_OR_RETURN(const int64_t devices, DevicesOf(request.options));
  RIDGE_ASSIGN_OR_RETURN(
      const std::unique_ptr<MpiCommunicator> ranks,
      JoinRanks({devices, verb.train.Has("devices") || !request.options.mesh.empty(), kLateAfter_s,
                 /*may_be_virtual=*/true}));
  request.resident_at_main_bytes = ResidentAtStart();
  if (ranks == nullptr) return Measure(verb, request, nullptr);
  const Status alike = CheckAlike(*ranks, request.options);
  if (!alike.ok()) return FailAlike(*ranks, alike);
  return EndRanks(*ranks, Measure(verb, request, ranks.get()));
}

}  // namespace

VerbBody AddBenchStep(CLI::App& app) {
  auto verb = std::make_shared<BenchStepVerb>();
  AddModelArgument(app, verb->train,
                   "A built-in model, an ONNX file, a graph in text form or a run folder");
  AddGroup(app, verb->train, OptionGroup::kModel);
  AddOptions(app, verb->train, {"batch", "slices", "recompute", "loss-chunks"});
  AddOption(app, verb->train, "steps", fmt::format("Steps to time ({})", kSteps));
  AddOption(app, verb->train, "seed", "Seed of initial values and batch (0)");
  AddOptimizerFlags(app, verb->train);
  AddDevicesFlags(app, verb->train);
  AddOptions(app, verb->train, {"mesh", "shard", "shares", "wire", "overlap"});
  AddMachineFlags(app, verb->train);
  AddSwitch(app, "--json", verb->json, "Print JSON")->group(kOutputGroup);
  AddColorFlag(app, verb->output);
  AddQuietFlags(app, verb->output);
  return [&app, verb] { return RunBenchStep(app, *verb); };
}

}  // namespace ridge::cli
