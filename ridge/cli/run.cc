// `ridge run`: a model's outputs for the arrays of an .npz file.
#include <fmt/format.h>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/machine.h"
#include "ridge/cli/output.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/units.h"
#include "ridge/data/npz.h"
#include "ridge/use/predict.h"

namespace ridge::cli {
namespace {

struct RunVerb {
  std::optional<std::string> inputs, outputs, checkpoint;
  TrainFlags model;  // of these: model, dims, weights, seed, and where to run
  OutputFlags output;
};

std::string OutputsText(const std::vector<NamedTensor>& outputs) {
  std::string text;
  for (const auto& [name, tensor] : outputs) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, TypeToString(tensor.type()));
  }
  return text;
}

Status RequireAll(const CLI::App& app, const RunVerb& verb) {
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.model.Has("model"), "MODEL",
                                        "a run folder, net.onnx, net.ridge, or a built-in model"));
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.inputs, "--inputs", "--inputs in.npz"));
  return RequireArgument(app, verb.outputs, "--outputs", "--outputs out.npz");
}

Result<int> RunModel(const CLI::App& app, const RunVerb& verb) {
  RIDGE_RETURN_IF_ERROR(RequireAll(app, verb));
  PredictRequest request;
  const TrainOptions& options = verb.model.options;
  request.model = options.model;
  request.weights = options.weights;
  request.weights_skip = options.weights_skip;
  RIDGE_ASSIGN_OR_RETURN(request.checkpoint, CheckpointOf(verb.checkpoint, request.model));
  request.seed = options.seed;
  RIDGE_ASSIGN_OR_RETURN(request.dims, ParseDims(options.dims));
  RIDGE_ASSIGN_OR_RETURN(request.inputs, ReadNpz(*verb.inputs));
  RIDGE_ASSIGN_OR_RETURN(const OpenedMachine opened,
                         OpenMachine(ChoiceOf(verb.model), SayUnless(verb.output.quiet)));
  RIDGE_ASSIGN_OR_RETURN(const Prediction prediction, Predict(request, opened.machine));
  for (const std::string& warning : prediction.warnings) PrintWarning(warning);
  RIDGE_RETURN_IF_ERROR(WriteNpz(*verb.outputs, prediction.outputs));
  SayUnless(verb.output.quiet)(
      fmt::format("{}: {}", *verb.outputs, OutputsText(prediction.outputs)));
  return kExitOk;
}

}  // namespace

VerbBody AddRun(CLI::App& app) {
  auto verb = std::make_shared<RunVerb>();
  AddModelArgument(app, verb->model,
                   "A run folder, an ONNX file, a graph in text form, or a built-in "
                   "model");
  AddText(app, "--inputs", verb->inputs, "FILE", "An .npz file with an array for each input");
  AddText(app, "--outputs", verb->outputs, "FILE", "The .npz file to write (-: standard output)");
  AddCheckpointFlag(app, verb->checkpoint);
  AddWeightsFlags(app, verb->model);
  AddOption(app, verb->model, "seed",
            "Seed of the initial values of a model that was not trained (0)")
      ->group("Model");
  AddPlaceFlags(app, verb->model);
  AddQuietFlags(app, verb->output);
  return [&app, verb] { return RunModel(app, *verb); };
}

}  // namespace ridge::cli
