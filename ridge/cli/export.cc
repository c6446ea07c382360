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
  std::optional<std::string> model, format, out;
  std::vector<std::string> dims;  // "NAME=N"
  std::optional<int64_t> batch, opset, seed;
  std::optional<double> tolerance, lr, momentum, weight_decay;
  std::optional<std::string> loss, optimizer, weights, checkpoint;
  std::vector<std::string> weights_skip;
  bool with_training = false;
  TrainFlags machine;
  OutputFlags output;
  bool json = false;
};

// What says how to train says nothing without a training step.
Status CheckTrainingFlags(const ExportVerb& verb) {
  if (verb.with_training) {
    if (*verb.format == "onnx") return Status();
    return Status(ErrorCode::kInvalidArgument,
                  fmt::format("--with-training is for --to onnx; --to is {}", *verb.format));
  }
  const std::pair<const char*, bool> flags[] = {{"--loss", verb.loss.has_value()},
                                                {"--optimizer", verb.optimizer.has_value()},
                                                {"--lr", verb.lr.has_value()},
                                                {"--momentum", verb.momentum.has_value()},
                                                {"--weight-decay", verb.weight_decay.has_value()}};
  for (const auto& [name, given] : flags) {
    if (!given) continue;
    return Status(ErrorCode::kInvalidArgument,
                  fmt::format("{} says how to train; without --with-training the file holds no "
                              "training step. hint: add --with-training, or leave {} out",
                              name, name));
  }
  return Status();
}

Result<ExportRequest> ReadRequest(const CLI::App& app, const ExportVerb& verb) {
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.model, "MODEL",
                                        "a run folder, net.onnx, net.ridge, or a built-in model"));
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.format, "--to", "--to onnx"));
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.out, "--out", "--out net.onnx"));
  ExportRequest request;
  request.model = *verb.model;
  request.weights = verb.weights.value_or("");
  request.weights_skip = verb.weights_skip;
  RIDGE_ASSIGN_OR_RETURN(request.checkpoint, CheckpointOf(verb.checkpoint, request.model));
  request.format = *verb.format;
  request.out = *verb.out;
  request.batch = verb.batch;
  request.opset = verb.opset.value_or(0);
  request.tolerance = verb.tolerance;
  request.seed = static_cast<uint64_t>(verb.seed.value_or(0));
  RIDGE_ASSIGN_OR_RETURN(request.dims, ParseDims(verb.dims));
  RIDGE_RETURN_IF_ERROR(CheckTrainingFlags(verb));
  if (!verb.with_training) return request;
  ExportTraining& training = request.training.emplace();
  training = {verb.loss.value_or(""), verb.optimizer, verb.lr, verb.momentum, verb.weight_decay};
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
                         OpenMachine(ChoiceOf(verb.machine), SayUnless(verb.output.quiet)));
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
  AddArgument(app, "MODEL", verb->model,
              "A run folder, an ONNX file, a graph in text form, or a "
              "built-in model");
  AddChoice(app, "--to", verb->format, {"onnx", "safetensors", "savedmodel"},
            "What to write; an ONNX file that was trained keeps its own nodes");
  AddText(app, "--out", verb->out, "PATH",
          "The file to write (-: standard output); data over 2 GB go to PATH.data");
  AddInteger(app, "--batch", verb->batch, {.minimum = 1}, "N",
             "At which the file is compared with the model (2); an open batch stays open");
  app.add_option("--dim", verb->dims, "Extent of another named dimension while comparing")
      ->type_name("NAME=N")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  AddCheckpointFlag(app, verb->checkpoint);
  AddWeightsFlags(app, verb->weights, verb->weights_skip);
  AddInteger(app, "--opset", verb->opset, {.minimum = 1}, "N",
             "ONNX operator set (the lowest that holds the graph, from 9 on)");
  AddNumber(app, "--tolerance", verb->tolerance, {}, "X",
            "Allowed difference, relative to an output's largest element (1e-5 for f32)");
  AddInteger(app, "--seed", verb->seed, {.minimum = 0}, "N",
             "Of made-up inputs, and of starting values without a run (0)");
  AddSwitch(app, "--with-training", verb->with_training,
            "Write a training step too (TrainingInfoProto)");
  AddText(app, "--loss", verb->loss, "LOSS",
          "Of the training step: cross_entropy:OUTPUT, mse:OUTPUT, bce:OUTPUT, OUTPUT (the run's)");
  AddChoice(app, "--optimizer", verb->optimizer, {"sgd", "adam", "adamw"},
            "Of the training step (the run's, else adam)");
  AddNumber(app, "--lr", verb->lr, {}, "X", "Of the training step (the run's, else 1e-3)");
  AddNumber(app, "--momentum", verb->momentum, {}, "X", "Of sgd (0)");
  AddNumber(app, "--weight-decay", verb->weight_decay, {}, "X", "Of the training step");
  AddPlaceFlags(app, verb->machine);
  AddSwitch(app, "--json", verb->json, "For machines")->group(kOutputGroup);
  AddQuietFlags(app, verb->output);
  return [&app, verb] { return RunExport(app, *verb); };
}

}  // namespace ridge::cli
