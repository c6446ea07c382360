#include "ridge/train/store/layer_norms.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

double NumberOf(const Json& json) { return json.is_null() ? NAN : json.get<double>(); }

LayerReport ReadReport(const Json& json) {
  LayerReport report;
  report.step = json.at("step").get<int64_t>();
  for (const Json& layer : json.at("layers")) {
    LayerNorms norms;
    norms.name = layer.at("name").get<std::string>();
    norms.weight_rms = NumberOf(layer.at("weight_rms"));
    if (layer.contains("gradient_rms")) norms.gradient_rms = NumberOf(layer.at("gradient_rms"));
    report.layers.push_back(std::move(norms));
  }
  return report;
}

}  // namespace

std::string LayerReportLine(const LayerReport& report) {
  Json layers = Json::array();
  for (const LayerNorms& norms : report.layers) {
    Json layer = {{"name", norms.name}, {"weight_rms", Number(norms.weight_rms)}};
    if (norms.gradient_rms) layer["gradient_rms"] = Number(*norms.gradient_rms);
    layers.push_back(std::move(layer));
  }
  const Json json = {{"step", report.step}, {"layers", std::move(layers)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<LayerReport> ReadLayerReports(const std::string& text) {
  std::vector<LayerReport> reports;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    try {
      LayerReport report = ReadReport(Json::parse(line));
      while (!reports.empty() && reports.back().step >= report.step) reports.pop_back();
      reports.push_back(std::move(report));
    } catch (const std::exception&) {  // of JSON, or of a shape: a line that was cut off
      continue;
    }
  }
  return reports;
}

}  // namespace ridge
