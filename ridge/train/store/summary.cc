#include "ridge/train/store/summary.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(); }
Json Optional(const std::optional<double>& value) { return value ? Number(*value) : Json(); }

}  // namespace

void RunSummary::Add(const std::string& data, const EvalResult& evaluation) {
  loss = evaluation.loss;
  evaluated_on = data;
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
  if (figures.modelled_step_s) json["modelled_step_s"] = Number(*figures.modelled_step_s);
  return json;
}

std::string SummaryToJson(const RunSummary& summary) {
  const Json json = {{"model", summary.model},
                     {"seed", summary.seed},
                     {"steps", summary.steps},
                     {"epochs", summary.epochs},
                     {"test_accuracy", Optional(summary.test_accuracy)},
                     {"loss", Number(summary.loss)},
                     {"evaluated_on", summary.evaluated_on},
                     {"validation_accuracy", Optional(summary.validation_accuracy)},
                     {"validation_loss", Optional(summary.validation_loss)},
                     {"wall_s", Number(summary.wall_s)},
                     {"planned", FiguresToJson(summary.planned)},
                     {"measured", FiguresToJson(summary.measured)},
                     {"skipped_samples", summary.skipped_samples},
                     {"parameters_sha256", summary.parameters_sha256},
                     {"ridge_version", summary.ridge_version},
                     {"device", summary.device},
                     {"threads", summary.threads}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ridge
