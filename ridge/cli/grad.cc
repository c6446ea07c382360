// `ridge grad`: the gradients of a model's output for its inputs and parameters.
#include <fmt/format.h>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/machine.h"
#include "ridge/cli/output.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/verbs.h"
#include "ridge/data/npz.h"
#include "ridge/train/options/options.h"
#include "ridge/use/gradients.h"

namespace ridge::cli {
namespace {

struct GradVerb {
  std::optional<std::string> inputs, outputs, loss, checkpoint;
  TrainFlags model;  // of these: model, dims, weights, seed, and where to run
  OutputFlags output;
};

Result<GradientRequest> ReadRequest(const CLI::App& app, const GradVerb& verb) {
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.model.Has("model"), "MODEL",
                                        "net.onnx, net.ridge, a run folder, or a built-in model"));
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.inputs, "--inputs", "--inputs in.npz"));
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.outputs, "--outputs", "--outputs out.npz"));
  GradientRequest request;
  const TrainOptions& options = verb.model.options;
  request.model = options.model;
  request.weights = options.weights;
  request.weights_skip = options.weights_skip;
  RIDGE_ASSIGN_OR_RETURN(request.checkpoint, CheckpointOf(verb.checkpoint, request.model));
  request.loss = verb.loss.value_or("");
  request.seed = options.seed;
  RIDGE_ASSIGN_OR_RETURN(request.dims, ParseDims(options.dims));
  RIDGE_ASSIGN_OR_RETURN(request.inputs, ReadNpz(*verb.inputs));
  return request;
}

Result<int> RunGrad(const CLI::App& app, const GradVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const GradientRequest request, ReadRequest(app, verb));
  RIDGE_ASSIGN_OR_RETURN(const OpenedMachine opened,
                         OpenMachine(ChoiceOf(verb.model), SayUnless(verb.output.quiet)));
  RIDGE_ASSIGN_OR_RETURN(GradientResult result, Gradients(request, opened.machine));
  for (const std::string& warning : result.warnings) PrintWarning(warning);
  const size_t outputs = result.outputs.size(), gradients = result.gradients.size();
  std::vector<NamedTensor> all = std::move(result.outputs);
  for (NamedTensor& gradient : result.gradients) all.push_back(std::move(gradient));
  RIDGE_RETURN_IF_ERROR(WriteNpz(*verb.outputs, all));
  SayUnless(verb.output.quiet)(fmt::format("{}: {} outputs, {} gradients of the sum of '{}'",
                                           *verb.outputs, outputs, gradients, result.loss));
  return kExitOk;
}

}  // namespace

VerbBody AddGrad(CLI::App& app) {
  auto verb = std::make_shared<GradVerb>();
  AddModelArgument(app, verb->model,
                   "An ONNX file, a graph in text form, a run folder, or a built-in model");
  AddText(app, "--inputs", verb->inputs, "FILE", "An .npz file with an array for each input");
  AddText(
      app, "--outputs", verb->outputs, "FILE",
      "The .npz file to write (-: standard output): outputs, and gradients under the names of what "
      "they belong to");
  AddText(app, "--loss", verb->loss, "OUTPUT",
          "The output whose sum is differentiated (the first one)");
  AddCheckpointFlag(app, verb->checkpoint);
  AddWeightsFlags(app, verb->model);
  AddOption(app, verb->model, "seed",
            "Seed of the initial values of a model that was not trained (0)")
      ->group("Model");
  AddPlaceFlags(app, verb->model);
  AddQuietFlags(app, verb->output);
  return [&app, verb] { return RunGrad(app, *verb); };
}

}  // namespace ridge::cli
