#include "ridge/cli/plan_scaling.h"

#include <fmt/format.h>

#include <charconv>

#include "ridge/cli/output.h"
#include "ridge/core/files.h"
#include "ridge/core/split.h"
#include "ridge/core/threads.h"
#include "ridge/plan/hardware/catalog_file.h"
#include "ridge/report/scaling_report.h"
#include "ridge/train/job/layout_search.h"
#include "ridge/train/load/folder_options.h"

namespace ridge::cli {
namespace {

// Without --devices as many as `choose` compares.
constexpr int64_t kUsualDevices = 8, kUsualNodes = 4;

// That reading takes beyond a step, in the mean of an epoch.
double InputSeconds(const PlannedRun& run) {
  if (!run.data || run.data->steps_per_epoch == 0) return 0;
  const double steps_s = run.job.epoch_s - run.job.eval_s;
  return std::max(0.0, steps_s / static_cast<double>(run.data->steps_per_epoch) - run.job.step_s);
}

// What the plan says of so many devices.
Result<ScalingPoint> PointOf(const std::string& device, const PlanVerb& verb, int64_t devices,
                             int64_t batch) {
  RIDGE_ASSIGN_OR_RETURN(const DevicePlan plan, PlanOn(device, verb, devices, batch));
  return ScalingPointOf(SummaryByHistory(plan, verb), devices, InputSeconds(plan.run));
}

bool Wants(const PlanVerb& verb, const char* kind) {
  return !verb.scaling || verb.scaling == "both" || verb.scaling == kind;
}

ScalingRequest RequestOf(const PlanVerb& verb, const std::string& place,
                         std::vector<int64_t> counts) {
  ScalingRequest request;
  request.title = fmt::format("{} on {}", verb.train.options.model, place);
  request.place = place;
  request.counts = std::move(counts);
  request.batch = BatchOf(verb.train, 1);
  request.strong = Wants(verb, "strong");
  request.weak = Wants(verb, "weak");
  return request;
}

// The best layouts over devices whose links are known, by the search.
class LayoutPoints {
 public:
  LayoutPoints(const PlanVerb& verb, MeshTarget place, OpenedMachine opened, TrainOptions options)
      : place_(std::move(place)), opened_(std::move(opened)) {
    request_.options = std::move(options);
    request_.refined = 1;
    request_.links.wire_share = WireShare(machine(), request_.options.precision);
    request_.limit_bytes =
        verb.train.options.fit_bytes > 0 ? verb.train.options.fit_bytes : machine().memory_bytes;
  }

  // `most`: of all counts, so that steps of every tensor axis are within a node.
  Status Begin(int64_t most) {
    RIDGE_ASSIGN_OR_RETURN(request_.links.all, DevicesAt(place_, *opened_.hardware, most));
    steps_.emplace(request_.options, request_.links, machine());
    return Status();
  }

  Result<ScalingPoint> At(int64_t devices, int64_t batch) {
    request_.options.batch = batch;
    RIDGE_ASSIGN_OR_RETURN(request_.links.all, DevicesAt(place_, *opened_.hardware, devices));
    RIDGE_ASSIGN_OR_RETURN(const LayoutsFound found, SearchLayouts(request_, *steps_));
    if (!found.fitting.empty()) return PointOf(found.fitting.front());
    ScalingPoint point = {.devices = devices, .batch = batch};
    point.limit_bytes = request_.limit_bytes;
    point.peak_bytes = found.smallest ? found.smallest->bytes.all() : found.least_variable_bytes;
    return point;
  }

 private:
  const Machine& machine() const { return opened_.machine; }

  Result<ScalingPoint> PointOf(const LayoutCost& cost) {
    const LayoutChoice& choice = cost.choice;
    RIDGE_ASSIGN_OR_RETURN(const LocalStep* step,
                           steps_->Planned(choice.tensor, choice.sequence, choice.samples));
    const KernelBand band = {machine().software.low, machine().software.high};
    return ScalingPointOf(cost, *step, request_.links.all, request_.links.wire_share, band,
                          request_.limit_bytes);
  }

  const MeshTarget place_;
  const OpenedMachine opened_;
  LayoutRequest request_;
  std::optional<LocalSteps> steps_;
};

// A training as a search over layouts takes it: an update of one batch.
Result<TrainOptions> SearchedOptions(const PlanVerb& verb, const MeshTarget& place) {
  TrainOptions options = verb.train.options;
  options.device = place.device;
  options.batch = BatchOf(verb.train, 1) * options.accumulate;
  options.accumulate = 1;
  if (verb.foreign) LeaveAsWritten(options);
  std::vector<std::string> notes;
  RIDGE_RETURN_IF_ERROR(TakeModelFolder(options, &notes));
  RIDGE_RETURN_IF_ERROR(CheckModel(options));
  return options;
}

Result<ScalingTable> SearchedScaling(const PlanVerb& verb, const MeshTarget& place,
                                     OpenedMachine opened) {
  const int64_t usual = place.cluster ? kUsualNodes * place.cluster->per_node() : kUsualDevices;
  RIDGE_ASSIGN_OR_RETURN(std::vector<int64_t> counts, CountsOf(verb, usual));
  RIDGE_ASSIGN_OR_RETURN(TrainOptions options, SearchedOptions(verb, place));
  const int64_t most = counts.back();
  ScalingRequest request = RequestOf(verb, place.name(), std::move(counts));
  request.batch = options.batch;
  request.title += ", " + options.precision;
  LayoutPoints points(verb, place, std::move(opened), std::move(options));
  RIDGE_RETURN_IF_ERROR(points.Begin(most));
  return PlanScaling(request,
                     [&](int64_t count, int64_t batch) { return points.At(count, batch); });
}

// Ranks of a machine of which the plan knows how long their sums take, and what their data is.
Result<ScalingTable> PlannedScaling(const PlanVerb& verb, const std::string& device) {
  const bool is_elsewhere = verb.on && device != "cpu";
  RIDGE_ASSIGN_OR_RETURN(std::vector<int64_t> counts,
                         CountsOf(verb, is_elsewhere ? kUsualDevices : AvailableThreads()));
  return PlanScaling(RequestOf(verb, device, std::move(counts)), [&](int64_t count, int64_t batch) {
    return PointOf(device, verb, count, batch);
  });
}

Result<ScalingTable> ScalingAt(const PlanVerb& verb, const std::string& name) {
  if (!verb.on || name == "cpu" || IsRecord(name)) return PlannedScaling(verb, name);
  RIDGE_ASSIGN_OR_RETURN(const MeshTarget place, ParseMeshTarget(name));
  TrainOptions options = verb.train.options;
  options.device = place.device;
  RIDGE_ASSIGN_OR_RETURN(OpenedMachine opened, OpenFor(verb, options, /*devices=*/1));
  const bool has_links = opened.hardware != nullptr && !IsCpu(*opened.hardware);
  if (!place.cluster && (!has_links || verb.train.Has("data"))) return PlannedScaling(verb, name);
  return SearchedScaling(verb, place, std::move(opened));
}

}  // namespace

Result<std::vector<int64_t>> CountsOf(const PlanVerb& verb, int64_t usual) {
  const std::string& text = verb.train.options.devices;
  if (!verb.train.Has("devices")) return DeviceCounts(usual);
  if (text.find(',') == std::string::npos) {
    RIDGE_ASSIGN_OR_RETURN(const int64_t most, ParseDevices(text));
    return DeviceCounts(most);
  }
  std::vector<int64_t> counts;
  for (const std::string_view part : SplitAt(text, ',')) {
    int64_t count = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), count);
    const bool is_number = error == std::errc() && end == part.data() + part.size();
    if (!is_number || count <= (counts.empty() ? 0 : counts.back())) {
      return InvalidArgument(fmt::format(
          "--devices is '{}'; the numbers that --why compares ascend from 1 or more. hint: "
          "--devices 1,2,4,8",
          text));
    }
    counts.push_back(count);
  }
  return counts;
}

Status PrintScaling(const PlanVerb& verb, const Terminal& terminal) {
  std::vector<ScalingTable> tables;
  const std::string places = verb.on.value_or(verb.train.options.device);
  for (const std::string_view place : SplitAt(places, ',')) {
    RIDGE_ASSIGN_OR_RETURN(ScalingTable table, ScalingAt(verb, std::string(place)));
    tables.push_back(std::move(table));
  }
  PrintData(verb.json ? ScalingJson(tables) + "\n" : ScalingReport(tables, terminal));
  return {};
}

}  // namespace ridge::cli
