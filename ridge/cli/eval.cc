// `ridge eval`: loss and accuracy of a run's network, or of a model as it is, on any data.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/machine.h"
#include "ridge/cli/output.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/units.h"
#include "ridge/models/model.h"
#include "ridge/train/load/model_source.h"
#include "ridge/train/loop/evaluate_run.h"
#include "ridge/train/store/run.h"

namespace ridge::cli {
namespace {

struct EvalVerb {
  std::optional<std::string> run, checkpoint;
  TrainFlags model;  // of these: data, batch, loss, dims, weights, and where to run
  OutputFlags output;
  bool json = false;
};

bool IsModel(const std::string& name) {
  return IsOnnxFile(name) || IsGraphFile(name) ||
         FindBuiltinModel(name.substr(0, name.find(':'))) != nullptr;
}

// Refuses model options for a run, whose options have them.
Status RefuseModelFlags(const EvalVerb& verb) {
  for (const char* key : {"batch", "loss", "dim", "weights", "weights-skip"}) {
    if (!verb.model.Has(key)) continue;
    return InvalidArgument(
        fmt::format("eval: --{} is for a model; {} is evaluated as a run, with what it "
                    "was started with. hint: leave it out",
                    key, *verb.run));
  }
  return Status();
}

Result<EvalRequest> MakeRequest(const EvalVerb& verb) {
  EvalRequest request;
  request.data = verb.model.options.data;
  RIDGE_ASSIGN_OR_RETURN(request.checkpoint, CheckpointOf(verb.checkpoint, *verb.run));
  if (!Run::Exists(*verb.run) && IsModel(*verb.run)) {
    request.model = verb.model.options;
    request.model.model = *verb.run;
    RIDGE_RETURN_IF_ERROR(CheckOptions(request.model));
    return request;
  }
  RIDGE_RETURN_IF_ERROR(RefuseModelFlags(verb));
  request.run = *verb.run;
  RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(*verb.run));
  request.model = run.options();
  return request;
}

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
  std::string text = outcome.step > 0 ? fmt::format("step {}: ", outcome.step) : "";
  if (outcome.result.accuracy) {
    text += fmt::format("accuracy {}, ", FormatPercent(*outcome.result.accuracy));
  }
  return text + fmt::format("loss {:.4f} ({} samples in {})\n", outcome.result.loss,
                            FormatCount(static_cast<double>(outcome.result.samples)),
                            FormatSeconds(outcome.result.seconds));
}

Result<int> RunEval(const CLI::App& app, const EvalVerb& verb) {
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.run, "RUN", "a run folder, or a model"));
  RIDGE_RETURN_IF_ERROR(
      RequireArgument(app, verb.model.Has("data"), "--data", "--data fashion-mnist"));
  RIDGE_ASSIGN_OR_RETURN(const EvalRequest request, MakeRequest(verb));
  const TrainOptions& given = verb.model.options;
  RIDGE_ASSIGN_OR_RETURN(
      const OpenedMachine opened,
      OpenMachine({.device = verb.model.Has("device") ? given.device : request.model.device,
                   .backend = verb.model.backend.value_or("cpu"),
                   .threads = given.threads,
                   .conv = verb.model.Has("conv") ? given.conv : request.model.conv},
                  SayUnless(verb.output.quiet)));
  RIDGE_ASSIGN_OR_RETURN(const EvalOutcome outcome, EvaluateRun(request, opened.machine));
  for (const std::string& warning : outcome.warnings) PrintWarning(warning);
  PrintData(verb.json ? ResultJson(outcome) : ResultText(outcome));
  return kExitOk;
}

}  // namespace

VerbBody AddEval(CLI::App& app) {
  auto verb = std::make_shared<EvalVerb>();
  AddArgument(app, "RUN", verb->run, "A run folder, or a model with its initial values");
  AddCheckpointFlag(app, verb->checkpoint);
  AddOption(app, verb->model, "data",
            "fashion-mnist, synthetic, images:DIR, idx:DIR, npz:FILE or csv:FILE; its test part if "
            "it has one");
  AddOption(app, verb->model, "loss",
            "Of a model: cross_entropy:OUTPUT, mse:OUTPUT, bce:OUTPUT, or an output (loss)");
  AddWeightsFlags(app, verb->model);
  AddOption(app, verb->model, "batch", "Of a model: samples per step (32)")->group("Model");
  AddPlaceFlags(app, verb->model);
  AddSwitch(app, "--json", verb->json, "Print JSON")->group(kOutputGroup);
  AddQuietFlags(app, verb->output);
  return [&app, verb] { return RunEval(app, *verb); };
}

}  // namespace ridge::cli
