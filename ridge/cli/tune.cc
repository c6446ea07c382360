#include "ridge/cli/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/output.h"
#include "ridge/cli/planning.h"
#include "ridge/cli/workloads.h"
#include "ridge/core/process.h"
#include "ridge/core/units.h"
#include "ridge/measure/tune_kernels.h"
#include "ridge/report/table.h"
#include "ridge/runtime/kernel_times.h"

namespace ridge::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShown = 8;  // changes of one model

struct TunedModel {
  TrainOptions options;
  TuneReport report;
};

// All refusals happen before anything is timed.
Result<std::vector<TrainOptions>> Jobs(const TuneRequest& request) {
  std::vector<TrainOptions> jobs;
  const auto add = [&](const std::string& model, int64_t batch) {
    TrainOptions options = request.flags.options;
    options.model = model;
    if (!request.flags.Has("batch")) options.batch = batch;
    options.data = "synthetic";
    jobs.push_back(std::move(options));
  };
  for (const std::string& model : request.models) add(model, TrainOptions().batch);
  if (request.models.empty()) {
    for (const Workload& workload : kWorkloads) add(workload.model, workload.batch);
  }
  for (const TrainOptions& options : jobs) {
    RIDGE_RETURN_IF_ERROR(CheckOptions(options));
    RIDGE_RETURN_IF_ERROR(CheckModel(options));
  }
  return jobs;
}

// The stored times, if they are of this machine and library; others are replaced.
KernelTimes StartTimes(const Machine& machine, const std::function<void(const std::string&)>& say) {
  const std::string library = LibrariesOf(machine);
  Result<KernelTimes> before = LoadKernelTimes(machine.profile.id, library);
  if (before.ok()) return *std::move(before);
  const std::string path = KernelTimesPath(machine.profile.id);
  const Result<KernelTimes> others = ReadKernelTimes(path);
  if (others.ok()) say(fmt::format("{}: times of {} are replaced", path, others->library));
  return {machine.profile.id, library, "", {}};
}

MachineChoice ChoiceFor(const TuneRequest& request, const TrainOptions& job) {
  MachineChoice choice = ChoiceOf(request.flags, job);
  choice.kernels = "all";
  return choice;
}

std::string ModelText(const TunedModel& tuned, const Terminal& terminal) {
  const TuneReport& report = tuned.report;
  std::string text = fmt::format(
      "{}, batch {}: step {} -> {}, {} kernels of {} calls timed{}\n", tuned.options.model,
      tuned.options.batch, FormatSeconds(report.usual_step_s), FormatSeconds(report.tuned_step_s),
      report.kernels, report.calls, report.faster() ? "" : "; not faster, not used");
  if (report.changed.empty() || !report.faster()) return text;
  Table table({{"node"}, {"", Align::kRight}, {"default"}, {"", Align::kRight}, {"tuned"}});
  for (size_t i = 0; i < std::min(kShown, report.changed.size()); ++i) {
    const TunedNode& node = report.changed[i];
    table.AddRow({node.name, FormatSeconds(node.usual_s), node.usual, FormatSeconds(node.tuned_s),
                  node.tuned});
  }
  text += table.ToText(terminal);
  if (report.changed.size() > kShown)
    text += fmt::format("  {} others\n", report.changed.size() - kShown);
  return text;
}

Json ModelJson(const TunedModel& tuned) {
  const TuneReport& report = tuned.report;
  Json changed = Json::array();
  for (const TunedNode& node : report.changed) {
    changed.push_back({{"name", node.name},
                       {"op", node.op},
                       {"usual", node.usual},
                       {"usual_s", node.usual_s},
                       {"tuned", node.tuned},
                       {"tuned_s", node.tuned_s}});
  }
  return {{"model", tuned.options.model},
          {"batch", tuned.options.batch},
          {"calls", report.calls},
          {"kernels", report.kernels},
          {"usual_step_s", report.usual_step_s},
          {"tuned_step_s", report.tuned_step_s},
          {"kept", report.faster()},
          {"changed", std::move(changed)}};
}

std::string TunedJson(const KernelTimes& times, const std::vector<TunedModel>& models) {
  Json json = {{"device", times.device}, {"library", times.library}, {"made_at", times.made_at}};
  json["models"] = Json::array();
  for (const TunedModel& model : models) json["models"].push_back(ModelJson(model));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

Result<int> RunTune(const TuneRequest& request) {
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, request.output));
  RIDGE_ASSIGN_OR_RETURN(const std::vector<TrainOptions> jobs, Jobs(request));
  const auto say = SayUnless(request.output.quiet);
  RIDGE_ASSIGN_OR_RETURN(const OpenedMachine opened,
                         OpenMachine(ChoiceFor(request, jobs.front()), say));
  KernelTimes times = StartTimes(opened.machine, say);
  std::vector<TunedModel> models;
  for (const TrainOptions& options : jobs) {
    RIDGE_ASSIGN_OR_RETURN(TuneReport report, TuneKernels(options, opened.machine, times.kernel_s));
    models.push_back({options, std::move(report)});
    if (!request.json) PrintData(ModelText(models.back(), terminal));
    times.made_at = UtcText(WallSeconds());
    RIDGE_RETURN_IF_ERROR(SaveKernelTimes(times));
  }
  const bool kept = std::any_of(models.begin(), models.end(),
                                [](const TunedModel& model) { return model.report.faster(); });
  if (request.json) {
    PrintData(TunedJson(times, models));
  } else if (kept) {
    PrintData(fmt::format("kept in {}; --kernels tuned uses it\n", KernelTimesPath(times.device)));
  }
  return kExitOk;
}

}  // namespace ridge::cli
