// `ridge eval`: loss and accuracy of a run's network, or of a model as it is, on any data.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/machine.h"
#include "ridge/cli/output.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/files.h"
#include "ridge/core/units.h"
#include "ridge/models/config/model_folder.h"
#include "ridge/models/model.h"
#include "ridge/observe/class_counts.h"
#include "ridge/observe/metric_names.h"
#include "ridge/report/table.h"
#include "ridge/train/load/folder_options.h"
#include "ridge/train/load/model_source.h"
#include "ridge/train/loop/evaluate_run.h"
#include "ridge/train/store/run.h"

namespace ridge::cli {
namespace {

struct EvalVerb {
  std::optional<std::string> run, checkpoint, confusion;
  TrainFlags model;  // of these: data, batch, loss, dims, weights, and where to run
  OutputFlags output;
  bool json = false;
};

bool IsModel(const std::string& name) {
  return IsOnnxFile(name) || IsGraphFile(name) || IsModelFolder(name) ||
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
    RIDGE_RETURN_IF_ERROR(TakeModelFolder(request.model));
    request.data = request.model.data;
    RIDGE_RETURN_IF_ERROR(CheckOptions(request.model));
    return request;
  }
  RIDGE_RETURN_IF_ERROR(RefuseModelFlags(verb));
  request.run = *verb.run;
  RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(*verb.run));
  request.model = run.options();
  return request;
}

// The record of the evaluation, without pictures.
std::string ResultJson(EvalOutcome outcome) {
  for (WrongRecord& wrong : outcome.record.wrong) wrong.picture.reset();
  const auto record = nlohmann::ordered_json::parse(RecordToJson(outcome.record));
  nlohmann::ordered_json json;
  json["samples"] = outcome.result.samples;
  json["loss"] = outcome.result.loss;
  json["accuracy"] = nullptr;
  if (outcome.result.accuracy) json["accuracy"] = *outcome.result.accuracy;
  json["step"] = outcome.step;
  json["seconds"] = outcome.result.seconds;
  for (const char* key : {"metrics", "classes", "confusion", "wrong"}) json[key] = record.at(key);
  if (outcome.record.pixels) json["pixels"] = true;
  if (outcome.record.boxes) json["boxes"] = true;
  return json.dump(1) + "\n";
}

std::string ShareText(const std::optional<double>& share) {
  return share ? FormatPercent(*share) : "-";
}

constexpr size_t kMostRows = 20;

// The classes of the least average precision first; those without true boxes are left out.
std::string BoxClassesText(const EvaluationRecord& record, const Terminal& terminal) {
  std::vector<ClassMetrics> classes = record.classes;
  std::erase_if(classes, [](const ClassMetrics& c) { return !c.ap50_95; });
  std::stable_sort(
      classes.begin(), classes.end(),
      [](const ClassMetrics& a, const ClassMetrics& b) { return *a.ap50_95 < *b.ap50_95; });
  if (classes.empty()) return "";
  Table table(
      {{"class"}, {"boxes", Align::kRight}, {"AP50", Align::kRight}, {"AP50-95", Align::kRight}});
  for (size_t i = 0; i < std::min(classes.size(), kMostRows); ++i) {
    const ClassMetrics& c = classes[i];
    table.AddRow({c.name, FormatInteger(c.support), ShareText(c.ap50), ShareText(c.ap50_95)});
  }
  std::string text = table.ToText(terminal, /*indent=*/0);
  if (classes.size() > kMostRows)
    text += fmt::format("and {} with a greater AP50-95\n",
                        FormatCountOf(static_cast<int64_t>(classes.size() - kMostRows), "class"));
  return text + "\n";
}

// The classes of the least F1 first; classes that are in no sample and in no answer are left out.
std::string ClassesText(const EvaluationRecord& record, const Terminal& terminal) {
  if (record.boxes) return BoxClassesText(record, terminal);
  std::vector<ClassMetrics> classes = record.classes;
  std::erase_if(classes, [](const ClassMetrics& c) { return !c.f1; });
  std::stable_sort(classes.begin(), classes.end(),
                   [](const ClassMetrics& a, const ClassMetrics& b) { return *a.f1 < *b.f1; });
  if (classes.empty()) return "";
  std::vector<Column> columns = {{"class"},
                                 {record.pixels ? "pixels" : "samples", Align::kRight},
                                 {"precision", Align::kRight},
                                 {"recall", Align::kRight},
                                 {record.pixels ? "Dice" : "F1", Align::kRight}};
  if (record.pixels) columns.push_back({"IoU", Align::kRight});
  Table table(std::move(columns));
  for (size_t i = 0; i < std::min(classes.size(), kMostRows); ++i) {
    const ClassMetrics& c = classes[i];
    std::vector<std::string> cells = {c.name, FormatInteger(c.support), ShareText(c.precision),
                                      ShareText(c.recall), ShareText(c.f1)};
    if (record.pixels) cells.push_back(ShareText(c.iou));
    table.AddRow(std::move(cells));
  }
  std::string text = table.ToText(terminal, /*indent=*/0);
  if (classes.size() > kMostRows)
    text += fmt::format("and {} with a greater {}\n",
                        FormatCountOf(static_cast<int64_t>(classes.size() - kMostRows), "class"),
                        record.pixels ? "Dice" : "F1");
  return text + "\n";
}

std::string ResultText(const EvalOutcome& outcome, const Terminal& terminal) {
  std::string text = ClassesText(outcome.record, terminal);
  if (outcome.step > 0) text += fmt::format("step {}: ", outcome.step);
  if (outcome.result.accuracy) {
    text += fmt::format("{} {}, ", outcome.record.pixels ? "pixel accuracy" : "accuracy",
                        FormatPercent(*outcome.result.accuracy));
  }
  for (const auto& [name, value] : outcome.result.metrics) text += MetricText(name, value) + ", ";
  return text + fmt::format("loss {:.4f} ({} samples in {})\n", outcome.result.loss,
                            FormatCount(static_cast<double>(outcome.result.samples)),
                            FormatSeconds(outcome.result.seconds));
}

Status WriteConfusion(const EvalVerb& verb, const EvaluationRecord& record) {
  if (!verb.confusion) return Status();
  if (record.confusion.empty()) {
    return InvalidArgument(
        fmt::format("--confusion: {} has no confusion matrix; a classifier with one label a sample "
                    "and at most {} classes has",
                    *verb.run, ClassCounts::kMostMatrixClasses));
  }
  return WriteFileAtomically(*verb.confusion, ConfusionToCsv(record));
}

Result<int> RunEval(const CLI::App& app, const EvalVerb& verb) {
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, verb.run, "RUN", "a run folder, or a model"));
  RIDGE_RETURN_IF_ERROR(
      RequireArgument(app, verb.model.Has("data"), "--data", "--data fashion-mnist"));
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, verb.output));
  RIDGE_ASSIGN_OR_RETURN(const EvalRequest request, MakeRequest(verb));
  MachineChoice choice = ChoiceOf(verb.model);
  if (!verb.model.Has("device")) choice.device = request.model.device;
  if (!verb.model.Has("conv")) choice.conv = request.model.conv;
  choice.host_kernels = !request.model.place.empty();
  RIDGE_ASSIGN_OR_RETURN(const OpenedMachine opened,
                         OpenMachine(choice, SayUnless(verb.output.quiet)));
  RIDGE_ASSIGN_OR_RETURN(const EvalOutcome outcome, EvaluateRun(request, opened.machine));
  for (const std::string& warning : outcome.warnings) PrintWarning(warning);
  RIDGE_RETURN_IF_ERROR(WriteConfusion(verb, outcome.record));
  PrintData(verb.json ? ResultJson(outcome) : ResultText(outcome, terminal));
  return kExitOk;
}

}  // namespace

VerbBody AddEval(CLI::App& app) {
  auto verb = std::make_shared<EvalVerb>();
  AddArgument(app, "RUN", verb->run, "A run folder, or a model with its initial values");
  AddCheckpointFlag(app, verb->checkpoint);
  AddOption(app, verb->model, "data",
            "As --data of ridge train: KIND:FILES[,KEY=VALUE...]; its test part if it has one");
  AddOption(app, verb->model, "loss",
            "Of a model: cross_entropy:OUTPUT, mse:OUTPUT, bce:OUTPUT, or an output (loss)");
  AddWeightsFlags(app, verb->model);
  AddOption(app, verb->model, "batch", "Of a model: samples per step (32)")->group("Model");
  AddPlaceFlags(app, verb->model);
  AddText(app, "--confusion", verb->confusion, "FILE", "Write the confusion matrix as CSV")
      ->group(kOutputGroup);
  AddSwitch(app, "--json", verb->json, "Print JSON")->group(kOutputGroup);
  AddQuietFlags(app, verb->output);
  return [&app, verb] { return RunEval(app, *verb); };
}

}  // namespace ridge::cli
