#include "ridge/train/store/summary.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(); }
Json Optional(const std::optional<double>& value) { return value ? Number(*value) : Json(); }

// Throws for what is no whole number.
int64_t Integer(const Json& json, const char* key) {
  return json.at(key).get_ref<const int64_t&>();
}

template <typename T>
void Read(const Json& json, const char* key, T& value) {
  if (!json.contains(key) || json[key].is_null()) return;
  if constexpr (std::is_integral_v<T>) {
    value = static_cast<T>(Integer(json, key));
  } else {
    value = json[key].get<T>();
  }
}

void Read(const Json& json, const char* key, std::optional<double>& value) {
  if (json.contains(key) && !json[key].is_null()) value = json[key].get<double>();
}

void Read(const Json& json, const char* key, RunFigures& figures) {
  if (!json.contains(key)) return;
  const Json& from = json[key];
  Read(from, "peak_bytes", figures.peak_bytes);
  Read(from, "arena_bytes", figures.arena_bytes);
  Read(from, "step_s", figures.step_s);
  Read(from, "epoch_s", figures.epoch_s);
  Read(from, "modelled_step_s", figures.modelled_step_s);
  Read(from, "communication_s", figures.communication_s);
  Read(from, "energy_j", figures.energy_j);
  if (from.contains("input_bytes")) Read(from, "input_bytes", figures.input_bytes.emplace());
}

void ReadRanks(const Json& json, std::vector<RankNumbers>& ranks) {
  for (const Json& from : json) {
    RankNumbers& rank = ranks.emplace_back();
    Read(from, "slices", rank.slices);
    const Json &planned = from.at("planned"), &measured = from.at("measured");
    rank.planned_peak_bytes = Integer(planned, "peak_bytes");
    rank.planned_arena_bytes = Integer(planned, "arena_bytes");
    rank.planned_step_s = planned.at("step_s").get<double>();
    rank.peak_bytes = Integer(measured, "peak_bytes");
    rank.arena_bytes = Integer(measured, "arena_bytes");
    rank.step_s = measured.at("step_s").get<double>();
    rank.collective_s = measured.at("collective_s").get<double>();
  }
}

RunSummary ReadSummary(const Json& json) {
  RunSummary summary;
  summary.steps = Integer(json, "steps");
  summary.epochs = Integer(json, "epochs");
  summary.loss = json.at("loss").is_null() ? NAN : json.at("loss").get<double>();
  Read(json, "model", summary.model);
  Read(json, "seed", summary.seed);
  Read(json, "test_accuracy", summary.test_accuracy);
  Read(json, "evaluated_on", summary.evaluated_on);
  Read(json, "validation_accuracy", summary.validation_accuracy);
  Read(json, "validation_loss", summary.validation_loss);
  Read(json, "wall_s", summary.wall_s);
  Read(json, "planned", summary.planned);
  Read(json, "measured", summary.measured);
  Read(json, "skipped_samples", summary.skipped_samples);
  if (json.contains("loss_scale")) {
    LossScaling& scaling = summary.loss_scaling.emplace();
    Read(json, "loss_scale", scaling.scale);
    Read(json, "skipped_steps", scaling.skipped_steps);
  }
  Read(json, "parameters_sha256", summary.parameters_sha256);
  Read(json, "ridge_version", summary.ridge_version);
  Read(json, "device", summary.device);
  Read(json, "libraries", summary.libraries);
  Read(json, "library_paths", summary.library_paths);
  Read(json, "threads", summary.threads);
  if (json.contains("metrics")) {
    for (const auto& [name, value] : json["metrics"].items())
      summary.metrics.emplace_back(name, value.is_null() ? NAN : value.get<double>());
  }
  if (json.contains("ranks")) ReadRanks(json["ranks"], summary.ranks);
  if (json.contains("device_bytes"))
    summary.device_bytes = DeviceBytesFromJson(json["device_bytes"]);
  if (json.contains("stopped_early") && json["stopped_early"].is_object()) {
    const Json& stop = json["stopped_early"];
    EarlyStop& early = summary.stopped_early.emplace();
    Read(stop, "evaluations", early.evaluations);
    Read(stop, "metric", early.metric);
    Read(stop, "best", early.best);
    Read(stop, "best_step", early.best_step);
  }
  return summary;
}

Json MetricsJson(const NamedMetrics& metrics) {
  Json json = Json::object();
  for (const auto& [name, value] : metrics) json[name] = Number(value);
  return json;
}

Json StopJson(const std::optional<EarlyStop>& stop) {
  if (!stop) return {};
  return {{"evaluations", stop->evaluations},
          {"metric", stop->metric},
          {"best", Number(stop->best)},
          {"best_step", stop->best_step}};
}

Json RanksJson(const RunSummary& summary) {
  const double communication_s = summary.measured.communication_s.value_or(0);
  Json json = Json::array();
  for (const RankNumbers& rank : summary.ranks) {
    json.push_back({{"slices", rank.slices},
                    {"planned",
                     {{"peak_bytes", rank.planned_peak_bytes},
                      {"arena_bytes", rank.planned_arena_bytes},
                      {"step_s", Number(rank.planned_step_s)}}},
                    {"measured",
                     {{"peak_bytes", rank.peak_bytes},
                      {"arena_bytes", rank.arena_bytes},
                      {"step_s", Number(rank.step_s)},
                      {"collective_s", Number(rank.collective_s)}}},
                    {"wait_share", Number(rank.wait_share(communication_s))}});
  }
  return json;
}

}  // namespace

void RunSummary::Add(const std::string& data, const EvalResult& evaluation) {
  loss = evaluation.loss;
  evaluated_on = data;
  for (const auto& [name, value] : evaluation.metrics)
    metrics.emplace_back(data + "/" + name, value);
  if (data == "test") {
    test_accuracy = evaluation.accuracy;
  } else {
    validation_accuracy = evaluation.accuracy;
    validation_loss = evaluation.loss;
  }
}

nlohmann::ordered_json FiguresToJson(const RunFigures& figures) {
  Json json = {{"peak_bytes", figures.peak_bytes},
               {"arena_bytes", figures.arena_bytes},
               {"step_s", Number(figures.step_s)},
               {"epoch_s", Optional(figures.epoch_s)}};
  if (figures.input_bytes) json["input_bytes"] = *figures.input_bytes;
  if (figures.communication_s) json["communication_s"] = Number(*figures.communication_s);
  if (figures.energy_j) json["energy_j"] = Number(*figures.energy_j);
  if (figures.modelled_step_s) json["modelled_step_s"] = Number(*figures.modelled_step_s);
  return json;
}

std::string SummaryToJson(const RunSummary& summary) {
  Json json = {{"model", summary.model},
               {"seed", summary.seed},
               {"steps", summary.steps},
               {"epochs", summary.epochs},
               {"test_accuracy", Optional(summary.test_accuracy)},
               {"loss", Number(summary.loss)},
               {"evaluated_on", summary.evaluated_on},
               {"validation_accuracy", Optional(summary.validation_accuracy)},
               {"validation_loss", Optional(summary.validation_loss)},
               {"metrics", MetricsJson(summary.metrics)},
               {"wall_s", Number(summary.wall_s)},
               {"planned", FiguresToJson(summary.planned)},
               {"measured", FiguresToJson(summary.measured)},
               {"skipped_samples", summary.skipped_samples},
               {"parameters_sha256", summary.parameters_sha256},
               {"ridge_version", summary.ridge_version},
               {"device", summary.device},
               {"threads", summary.threads},
               {"stopped_early", StopJson(summary.stopped_early)}};
  if (summary.loss_scaling) {
    json["loss_scale"] = Number(summary.loss_scaling->scale);
    json["skipped_steps"] = summary.loss_scaling->skipped_steps;
  }
  if (!summary.libraries.empty()) json["libraries"] = summary.libraries;
  if (!summary.library_paths.empty()) json["library_paths"] = summary.library_paths;
  if (!summary.ranks.empty()) json["ranks"] = RanksJson(summary);
  if (summary.device_bytes) json["device_bytes"] = DeviceBytesToJson(*summary.device_bytes);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<RunSummary> SummaryFromJson(const std::string& text, const std::string& file) {
  try {
    return ReadSummary(Json::parse(text));
  } catch (const Json::exception& error) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: not the summary of a run: {}", file, error.what()));
  }
}

}  // namespace ridge
