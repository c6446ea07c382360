// `ridge export`: a model as a file for other programs, compared with the model at once.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/machine.h"
#include "ridge/cli/output.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/units.h"
#include "ridge/report/table.h"
#include "ridge/train/options/options.h"
#include "ridge/use/export_model.h"

namespace ridge::cli {
namespace {

struct ExportVerb {
  std::optional<std::string> format, out, checkpoint;
  std::optional<int64_t> opset;
  std::optional<double> tolerance;
  bool with_training = false;
  TrainFlags model;  // of these: model, batch, dims, weights, seed, loss, optimizer, where to run
  OutputFlags output;
  bool json = false;
};

// Refuses options of the training step when the file holds none.
Status CheckTrainingFlags(const ExportVerb& verb) {
  if (verb.with_training) {
    if (*verb.format == "onnx") return Status();
    return InvalidArgument(
        fmt::format("--with-training is for --to onnx; --to is {}", *verb.format));
  }
  for (const char* key : {"loss", "optimizer", "lr", "momentum", "weight-decay"}) {
    if (!verb.model.Has(key)) continue;
    return InvalidArgument(
        fmt::format("--{} says how to train; without --with-training the file holds no "
                    "training step. hint: add --with-training, or leave --{} out",
                    key, key));
  }
  return Status();
}

Result<ExportRequest> ReadRequest(const CLI::App& app, const ExportVerb& verb) {
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.model.Has("model"), "MODEL",
                                        "a run folder, net.onnx, net.ridge, or a built-in model"));
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.format, "--to", "--to onnx"));
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.out, "--out", "--out net.onnx"));
  ExportRequest request;
  const TrainFlags& flags = verb.model;
  const TrainOptions& options = flags.options;
  request.model = options.model;
  request.weights = options.weights;
  request.weights_skip = options.weights_skip;
  RIDGE_ASSIGN_OR_RETURN(request.checkpoint, CheckpointOf(verb.checkpoint, request.model));
  request.format = *verb.format;
  request.out = *verb.out;
  request.batch = flags.Given("batch", options.batch);
  request.opset = verb.opset.value_or(0);
  request.tolerance = verb.tolerance;
  request.seed = options.seed;
  RIDGE_ASSIGN_OR_RETURN(request.dims, ParseDims(options.dims));
  RIDGE_RETURN_IF_ERROR(CheckTrainingFlags(verb));
  if (!verb.with_training) return request;
  ExportTraining& training = request.training.emplace();
  training = {options.loss, flags.Given("optimizer", options.optimizer.name),
              flags.Given("lr", options.lr), flags.Given("momentum", options.optimizer.momentum),
              options.optimizer.weight_decay};
  return request;
}

std::string ReportJson(const ExportReport& report) {
  nlohmann::ordered_json json;
  json["path"] = nullptr;
  if (!report.path.empty()) json["path"] = report.path;
  json["data_path"] = nullptr;
  if (!report.data_path.empty()) json["data_path"] = report.data_path;
  json["bytes"] = report.bytes;
  json["tensors"] = report.tensors;
  if (report.opset != 0) {
    json["opset"] = report.opset;
    json["ir_version"] = report.ir_version;
  }
  json["carries"] = nullptr;
  if (!report.carries.empty()) json["carries"] = report.carries;
  json["accepted"] = report.accepted();
  json["checked_at"] = report.checked_at;
  json["outputs"] = nlohmann::ordered_json::array();
  for (const ExportDifference& d : report.outputs) {
    json["outputs"].push_back({{"name", d.output},
                               {"type", d.type},
                               {"largest_difference", d.largest},
                               {"relative", d.relative},
                               {"tolerance", d.tolerance},
                               {"accepted", d.accepted()}});
  }
  json["notes"] = report.notes;
  return json.dump(1) + "\n";
}

std::string DifferenceTable(const ExportReport& report, const Terminal& terminal) {
  Table table({{"output"},
               {"type"},
               {"largest difference", Align::kRight},
               {"relative", Align::kRight},
               {"tolerance", Align::kRight}});
  for (const ExportDifference& d : report.outputs) {
    table.AddRow({d.output, d.type, fmt::format("{:.3g}", d.largest),
                  fmt::format("{:.3g}", d.relative), fmt::format("{:.3g}", d.tolerance)},
                 d.accepted() ? Style::kPlain : Style::kBold);
  }
  return table.ToText(terminal);
}

std::string ReportText(const ExportReport& report) {
  const Terminal terminal = DetectTerminal(stdout, ColourChoice::kAuto);
  std::string text;
  if (!report.path.empty()) {
    text +=
        fmt::format("{}: {}, {} tensors", report.path, FormatBytes(report.bytes), report.tensors);
    if (report.opset != 0)
      text += fmt::format(", opset {}, IR {}", report.opset, report.ir_version);
    if (!report.data_path.empty()) text += fmt::format("; data in {}", report.data_path);
    text += "\n";
  }
  if (!report.carries.empty())
    text +=
        fmt::format("carries {}: `ridge predict {} INPUT` reads it\n", report.carries, report.path);
  if (report.outputs.empty()) return text + "read back: every byte is the same\n";
  text += fmt::format("read back and run beside the model at {}:\n",
                      fmt::join(report.checked_at, " and "));
  return text + DifferenceTable(report, terminal);
}

// What differs most, for the error's line.
Status TooFar(const ExportReport& report, const std::string& out) {
  const ExportDifference* worst = nullptr;
  for (const ExportDifference& d : report.outputs) {
    if (!d.accepted() && (worst == nullptr || d.relative > worst->relative)) worst = &d;
  }
  RIDGE_CHECK(worst != nullptr, "a refused export differs");
  return Status(
      ErrorCode::kQualityGate,
      fmt::format("{}: not written: output '{}' differs by {:.3g} of its largest element; "
                  "{:.3g} is allowed. hint: --tolerance {:.1g}",
                  out, worst->output, worst->relative, worst->tolerance, worst->relative * 2));
}

Result<int> RunExport(const CLI::App& app, const ExportVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const ExportRequest request, ReadRequest(app, verb));
  if (request.format == "savedmodel") {
    return Status(ErrorCode::kUnsupported,
                  "export: SavedModel folders are not written. hint: --to onnx, then one of "
                  "TensorFlow's converters from ONNX");
  }
  const bool on_stdout = IsStandardOutput(verb.out);
  RIDGE_RETURN_IF_ERROR(OneOnStandardOutput({{"--json", verb.json}, {"--out", on_stdout}}));
  RIDGE_ASSIGN_OR_RETURN(const OpenedMachine opened,
                         OpenMachine(ChoiceOf(verb.model), SayUnless(verb.output.quiet)));
  RIDGE_ASSIGN_OR_RETURN(const ExportReport report, ExportModel(request, opened.machine));
  for (const std::string& note : report.notes) PrintWarning(note);
  const auto print = on_stdout ? PrintTalk : PrintData;
  print(verb.json ? ReportJson(report) : ReportText(report));
  if (!report.accepted()) return TooFar(report, request.out);
  return kExitOk;
}

}  // namespace

VerbBody AddExport(CLI::App& app) {
  auto verb = std::make_shared<ExportVerb>();
  AddModelArgument(app, verb->model,
                   "A run folder, an ONNX file, a graph in text form, or a built-in model");
  AddChoice(app, "--to", verb->format, {"onnx", "safetensors", "savedmodel"},
            "What to write; an ONNX file that was trained keeps its own nodes");
  AddText(app, "--out", verb->out, "PATH",
          "The file to write (-: standard output); data over 2 GB go to PATH.data");
  AddOption(app, verb->model, "batch",
            "Batch at which the file is compared with the model (2); an open batch stays open");
  AddCheckpointFlag(app, verb->checkpoint);
  AddWeightsFlags(app, verb->model);
  AddInteger(app, "--opset", verb->opset, {.minimum = 1}, "N",
             "ONNX operator set (the lowest that holds the graph, from 9 on)");
  AddNumber(app, "--tolerance", verb->tolerance, {}, "X",
            "Allowed difference, relative to an output's largest element (1e-5 for f32)");
  AddOption(app, verb->model, "seed",
            "Seed of random inputs, and of initial values without a run (0)");
  AddSwitch(app, "--with-training", verb->with_training,
            "Write a training step too (TrainingInfoProto)");
  AddOption(
      app, verb->model, "loss",
      "Of the training step: cross_entropy:OUTPUT, mse:OUTPUT, bce:OUTPUT, OUTPUT (the run's)");
  AddOption(app, verb->model, "optimizer", "Of the training step (the run's, else adam)");
  AddOption(app, verb->model, "lr", "Of the training step (the run's, else 1e-3)");
  AddOption(app, verb->model, "momentum", "Of sgd (0)");
  AddOption(app, verb->model, "weight-decay", "Of the training step");
  AddPlaceFlags(app, verb->model);
  AddSwitch(app, "--json", verb->json, "Print JSON")->group(kOutputGroup);
  AddQuietFlags(app, verb->output);
  return [&app, verb] { return RunExport(app, *verb); };
}

}  // namespace ridge::cli
