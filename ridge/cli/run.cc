// `ridge run`: a model's outputs for the arrays of an .npz file.
#include <fmt/format.h>

#include <charconv>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/machine.h"
#include "ridge/cli/output.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/units.h"
#include "ridge/data/npz.h"
#include "ridge/train/predict.h"

namespace ridge::cli {
namespace {

struct RunVerb {
  std::optional<std::string> model, inputs, outputs;
  std::vector<std::string> dims;  // "NAME=N"
  std::optional<int64_t> seed;
  TrainFlags machine;
  OutputFlags output;
};

Result<std::map<std::string, int64_t>> ParseDims(const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> dims;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    const std::string number = equals == std::string::npos ? "" : text.substr(equals + 1);
    int64_t extent = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), extent);
    if (equals == 0 || error != std::errc() || *end != '\0' || extent < 1) {
      return Status(ErrorCode::kInvalidArgument,
                    fmt::format("--dim is '{}'; it must be NAME=N with N at least 1", text));
    }
    dims[text.substr(0, equals)] = extent;
  }
  return dims;
}

std::string OutputsText(const std::vector<NamedTensor>& outputs) {
  std::string text;
  for (const auto& [name, tensor] : outputs) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, TypeToString(tensor.type()));
  }
  return text;
}

Status RequireAll(const CLI::App& app, const RunVerb& verb) {
  RIDGE_RETURN_IF_ERROR(
      RequireArgument(app, verb.model, "MODEL", "a run folder, net.ridge, or a built-in model"));
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.inputs, "--inputs", "--inputs in.npz"));
  return RequireArgument(app, verb.outputs, "--outputs", "--outputs out.npz");
}

Result<int> RunModel(const CLI::App& app, const RunVerb& verb) {
  RIDGE_RETURN_IF_ERROR(RequireAll(app, verb));
  PredictRequest request;
  request.model = *verb.model;
  request.seed = static_cast<uint64_t>(verb.seed.value_or(0));
  RIDGE_ASSIGN_OR_RETURN(request.dims, ParseDims(verb.dims));
  RIDGE_ASSIGN_OR_RETURN(request.inputs, ReadNpz(*verb.inputs));
  RIDGE_ASSIGN_OR_RETURN(const OpenedMachine opened,
                         OpenMachine({.device = verb.machine.device.value_or("cpu"),
                                      .backend = verb.machine.backend.value_or("cpu"),
                                      .threads = verb.machine.threads.value_or(0)},
                                     SayUnless(verb.output.quiet)));
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
  AddArgument(app, "MODEL", verb->model,
              "A run folder (its newest checkpoint), a graph in text form, or a built-in model");
  AddText(app, "--inputs", verb->inputs, "FILE", "An .npz file with an array for each input");
  AddText(app, "--outputs", verb->outputs, "FILE", "The .npz file to write");
  app.add_option("--dim", verb->dims, "Extent of a named dimension of a graph")
      ->type_name("NAME=N")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  AddInteger(app, "--seed", verb->seed, {.minimum = 0}, "N",
             "Of the starting values of a model that was not trained (0)");
  AddPlaceFlags(app, verb->machine);
  AddQuietFlags(app, verb->output);
  return [&app, verb] { return RunModel(app, *verb); };
}

}  // namespace ridge::cli
