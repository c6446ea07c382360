// `ridge bench step`: times training steps on one random batch, beside the plan and the roofline.
#include "ridge/measure/bench_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/machine.h"
#include "ridge/cli/output.h"
#include "ridge/cli/planning.h"
#include "ridge/cli/start.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/units.h"
#include "ridge/report/plan_report.h"
#include "ridge/report/table.h"

namespace ridge::cli {
namespace {

constexpr int64_t kSteps = 30;

struct BenchStepVerb {
  TrainFlags train;
  OutputFlags output;
  bool json = false;
};

TrainOptions BenchOptions(const TrainFlags& flags) {
  TrainOptions options = flags.options;
  options.steps.reset();       // the bench counts its own
  options.data = "synthetic";  // what it makes the batch of
  return options;
}

std::string BenchReport(const BenchResult& result, const Terminal& terminal) {
  Table table({{""}, {"", Align::kRight}});
  table.AddRow({"step, median", FormatSeconds(result.ms_med / 1e3)});
  table.AddRow({"step, fastest", FormatSeconds(result.ms_min / 1e3)});
  table.AddRow({"samples/s", FormatCount(result.samples_s)});
  table.AddRow({"first step after", FormatSeconds(result.first_step_s)});
  table.AddRow({"roofline", FormatSeconds(result.roofline_step_s)});
  table.AddRow({"FLOPs at the peak rate", FormatSeconds(result.flops_floor_s)});
  const double achieved = result.ms_med > 0 ? result.flops_floor_s / (result.ms_med / 1e3) : 0;
  table.AddRow({"model FLOPs utilization", FormatPercent(achieved)});
  table.AddRow({"loss, first and last", fmt::format("{:.4g} {:.4g}", result.loss0, result.loss)});
  return fmt::format("{}, batch {}, {}, {}, {} thread{}, {} parameters\n\n", result.model,
                     result.batch, result.optimizer, result.precision, result.threads,
                     result.threads == 1 ? "" : "s",
                     FormatCount(static_cast<double>(result.params))) +
         table.ToText(terminal) + "\n" +
         ComparisonReport(NumbersOf(result.planned), NumbersOf(result.measured), terminal);
}

Result<int> RunBenchStep(const CLI::App& app, const BenchStepVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, verb.output));
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.train.Has("model"), "MODEL",
                                        "`ridge models` lists the built-in ones"));
  BenchRequest request;
  request.options = BenchOptions(verb.train);
  RIDGE_RETURN_IF_ERROR(CheckOptions(request.options));
  RIDGE_RETURN_IF_ERROR(CheckModel(request.options));
  request.steps = verb.train.options.steps.value_or(kSteps);
  request.resident_at_main_bytes = ResidentAtStart();
  RIDGE_ASSIGN_OR_RETURN(
      const OpenedMachine opened,
      OpenMachine(ChoiceOf(verb.train, request.options), SayUnless(verb.output.quiet)));
  request.measure_peaks = PeaksOf(opened);
  RIDGE_ASSIGN_OR_RETURN(const BenchResult result, BenchStep(request, opened.machine));
  PrintData(verb.json ? BenchToJson(result) + "\n" : BenchReport(result, terminal));
  return kExitOk;
}

}  // namespace

VerbBody AddBenchStep(CLI::App& app) {
  auto verb = std::make_shared<BenchStepVerb>();
  AddModelArgument(app, verb->train,
                   "A built-in model, an ONNX file, a graph in text form or a run folder");
  AddGroup(app, verb->train, OptionGroup::kModel);
  AddOptions(app, verb->train, {"batch", "slices", "recompute"});
  AddOption(app, verb->train, "steps", fmt::format("Steps to time ({})", kSteps));
  AddOption(app, verb->train, "seed", "Seed of initial values and batch (0)");
  AddOptimizerFlags(app, verb->train);
  AddGroup(app, verb->train, OptionGroup::kMachine);
  AddSwitch(app, "--json", verb->json, "Print JSON")->group(kOutputGroup);
  AddColorFlag(app, verb->output);
  AddQuietFlags(app, verb->output);
  return [&app, verb] { return RunBenchStep(app, *verb); };
}

}  // namespace ridge::cli
