// `ridge eval`: loss and accuracy of a run's network on any data.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/machine.h"
#include "ridge/cli/output.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/units.h"
#include "ridge/train/run_evaluation.h"

namespace ridge::cli {
namespace {

struct EvalVerb {
  std::optional<std::string> run, data;
  TrainFlags machine;
  OutputFlags output;
  bool json = false;
};

std::string ResultJson(const EvalOutcome& outcome) {
  nlohmann::ordered_json json;
  json["samples"] = outcome.result.samples;
  json["loss"] = outcome.result.loss;
  json["accuracy"] = nullptr;
  if (outcome.result.accuracy) json["accuracy"] = *outcome.result.accuracy;
  json["step"] = outcome.step;
  json["seconds"] = outcome.result.seconds;
  return json.dump(1) + "\n";
}

std::string ResultText(const EvalOutcome& outcome) {
  std::string text = fmt::format("step {}: ", outcome.step);
  if (outcome.result.accuracy) {
    text += fmt::format("accuracy {}, ", FormatPercent(*outcome.result.accuracy));
  }
  return text + fmt::format("loss {:.4f} ({} samples in {})\n", outcome.result.loss,
                            FormatCount(static_cast<double>(outcome.result.samples)),
                            FormatSeconds(outcome.result.seconds));
}

Result<int> RunEval(const CLI::App& app, const EvalVerb& verb) {
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.run, "RUN", "a run folder"));
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.data, "--data", "--data fashion-mnist"));
  RIDGE_ASSIGN_OR_RETURN(const TrainOptions stored, ReadRunOptions(*verb.run));
  const std::string device = verb.machine.device.value_or(stored.device);
  RIDGE_ASSIGN_OR_RETURN(const OpenedMachine opened,
                         OpenMachine({.device = device,
                                      .backend = verb.machine.backend.value_or("cpu"),
                                      .threads = verb.machine.threads.value_or(0)},
                                     SayUnless(verb.output.quiet)));
  RIDGE_ASSIGN_OR_RETURN(const EvalOutcome outcome,
                         EvaluateRun({.run = *verb.run, .data = *verb.data}, opened.machine));
  for (const std::string& warning : outcome.warnings) PrintWarning(warning);
  PrintData(verb.json ? ResultJson(outcome) : ResultText(outcome));
  return kExitOk;
}

}  // namespace

VerbBody AddEval(CLI::App& app) {
  auto verb = std::make_shared<EvalVerb>();
  AddArgument(app, "RUN", verb->run, "A run folder; its newest checkpoint is used");
  AddText(app, "--data", verb->data, "SPEC",
          "fashion-mnist, synthetic, idx:DIR, npz:FILE or csv:FILE; its test part if it has one");
  AddPlaceFlags(app, verb->machine);
  AddSwitch(app, "--json", verb->json, "For machines")->group(kOutputGroup);
  AddQuietFlags(app, verb->output);
  return [&app, verb] { return RunEval(app, *verb); };
}

}  // namespace ridge::cli
