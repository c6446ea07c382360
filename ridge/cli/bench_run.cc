// `ridge bench run`: times a model's outputs, forward only.
#include "ridge/measure/bench_run.h"

#include <fmt/format.h>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/machine.h"
#include "ridge/cli/output.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/units.h"
#include "ridge/report/table.h"

namespace ridge::cli {
namespace {

constexpr int64_t kRuns = 1000;

struct BenchRunVerb {
  std::optional<int64_t> runs;
  TrainFlags model;  // of these: model, batch, dims, seed, and where to run
  OutputFlags output;
  bool json = false;
};

std::string BenchRunReport(const BenchRunResult& result, const Terminal& terminal) {
  Table table({{""}, {"", Align::kRight}});
  table.AddRow({"run, median", FormatSeconds(result.median_s)});
  table.AddRow({"run, fastest", FormatSeconds(result.least_s)});
  table.AddRow({"first run", FormatSeconds(result.first_s)});
  table.AddRow({"samples/s", FormatCount(static_cast<double>(result.batch) / result.median_s)});
  if (result.nodes > 0)
    table.AddRow({"a node", FormatSeconds(result.least_s / static_cast<double>(result.nodes))});
  return fmt::format("{}, batch {}, {} node{}, {} thread{}\n\n", result.model, result.batch,
                     result.nodes, result.nodes == 1 ? "" : "s", result.threads,
                     result.threads == 1 ? "" : "s") +
         table.ToText(terminal);
}

Result<int> RunBenchRun(const CLI::App& app, const BenchRunVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, verb.output));
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.model.Has("model"), "MODEL",
                                        "`ridge models` lists the built-in ones"));
  const TrainOptions& options = verb.model.options;
  BenchRunRequest request{.model = options.model};
  if (verb.model.Has("batch")) request.batch = options.batch;
  request.runs = verb.runs.value_or(kRuns);
  request.seed = options.seed;
  RIDGE_ASSIGN_OR_RETURN(request.dims, ParseDims(options.dims));
  RIDGE_ASSIGN_OR_RETURN(const OpenedMachine opened,
                         OpenMachine(ChoiceOf(verb.model), SayUnless(verb.output.quiet)));
  RIDGE_ASSIGN_OR_RETURN(const BenchRunResult result, BenchRun(request, opened.machine));
  PrintData(verb.json ? BenchRunToJson(result) + "\n" : BenchRunReport(result, terminal));
  return kExitOk;
}

}  // namespace

VerbBody AddBenchRun(CLI::App& app) {
  auto verb = std::make_shared<BenchRunVerb>();
  AddModelArgument(app, verb->model,
                   "A built-in model, an ONNX file, a graph in text form or a run folder");
  AddOption(app, verb->model, "batch", "Samples per run (1)");
  AddOption(app, verb->model, "dim");
  AddInteger(app, "--runs", verb->runs, {.minimum = 1}, "N",
             fmt::format("Runs to time ({})", kRuns));
  AddOption(app, verb->model, "seed", "Seed of initial values and inputs (0)");
  AddPlaceFlags(app, verb->model);
  AddSwitch(app, "--json", verb->json, "Print JSON")->group(kOutputGroup);
  AddColorFlag(app, verb->output);
  AddQuietFlags(app, verb->output);
  return [&app, verb] { return RunBenchRun(app, *verb); };
}

}  // namespace ridge::cli
