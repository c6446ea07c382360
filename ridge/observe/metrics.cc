#include "ridge/observe/metrics.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ridge/observe/json_text.h"

namespace ridge {
namespace {

std::string NumberOrNull(const std::optional<double>& value) {
  return value ? JsonNumber(*value) : "null";
}

std::string LossText(double loss) {
  if (std::isfinite(loss)) return "";
  const char* text = std::isnan(loss) ? "nan" : loss > 0 ? "inf" : "-inf";
  return fmt::format(",\"loss_text\":\"{}\"", text);
}

// What a line reports; nothing when it is no report of ours.
struct Line {
  int64_t step = 0;
  bool evaluation = false;
};

std::optional<Line> ReadLine(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto step = json.find("step");
  if (step == json.end() || !step->is_number_integer()) return std::nullopt;
  return Line{step->get<int64_t>(), json.contains("validation_loss") || json.contains("test_loss")};
}

// Where the first line that is not kept begins, or an unfinished last line.  Lines that are no
// reports, such as a user's notes, stay.
int64_t BytesToKeep(const std::string& path, int64_t resumed_step, bool evaluation_owed) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  int64_t kept_bytes = 0;
  while (std::getline(file, text) && !file.eof()) {  // eof: the line has no newline
    const std::optional<Line> line = ReadLine(text);
    if (line && line->step > resumed_step) break;
    if (line && line->step == resumed_step && line->evaluation && evaluation_owed) break;
    kept_bytes += static_cast<int64_t>(text.size()) + 1;
  }
  return kept_bytes;
}

}  // namespace

std::string InputStagesJson(const StageSeconds& stages) {
  std::string text;
  for (size_t s = 0; s < kInputStages; ++s) {
    const auto stage = static_cast<InputStage>(s);
    if (stages.seconds[s] <= 0) continue;
    text += fmt::format("{}\"{}\":{:.4f}", text.empty() ? "" : ",", InputStageName(stage),
                        stages.Share(stage));
  }
  return text.empty() ? text : ",\"input_stages\":{" + text + "}";
}

// To four decimals: they are means.
std::string CountersJson(const DeviceCounters& gpu) {
  std::string text;
  for (const CounterField& field : kCounterFields) {
    const std::optional<double>& value = gpu.*field.value;
    if (!value) continue;
    text += fmt::format("{}\"{}\":{}", text.empty() ? "" : ",", field.name,
                        JsonNumber(std::round(*value * 1e4) / 1e4));
  }
  return text.empty() ? text : ",\"gpu\":{" + text + "}";
}

std::string MetricsLine(const MetricsReport& report) {
  std::string line = fmt::format(
      R"({{"step":{},"epoch":{},"loss":{},"accuracy":{},"lr":{},"samples_s":{},"input_wait":{},)"
      R"("step_s":{})",
      report.step, report.epoch, JsonNumber(report.loss), NumberOrNull(report.accuracy),
      JsonNumber(report.lr), JsonNumber(report.samples_s), JsonNumber(report.input_wait),
      JsonNumber(report.step_s));
  line += InputStagesJson(report.input_stages);
  line += CountersJson(report.gpu);
  if (const auto& scaling = report.loss_scaling) {
    line += fmt::format(R"(,"loss_scale":{},"skipped_steps":{})", JsonNumber(scaling->scale),
                        scaling->skipped_steps);
  }
  line += LossText(report.loss);
  for (const auto& [name, value] : {std::pair("loss", report.evaluation_loss),
                                    std::pair("accuracy", report.evaluation_accuracy)}) {
    if (value) line += fmt::format(",\"{}_{}\":{}", report.evaluated_on, name, JsonNumber(*value));
  }
  for (const auto& [name, value] : report.evaluation_metrics)
    line += fmt::format(",\"{}_{}\":{}", report.evaluated_on, name, JsonNumber(value));
  return line + "}";
}

namespace {

using Json = nlohmann::json;

// NaN for null, which is what a number that is not finite was written as.
double NumberAt(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : NAN;
}

std::optional<double> OptionalAt(const Json& json, const std::string& key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

double LossAt(const Json& json) {
  const std::string text = json.value("loss_text", "");
  if (text == "inf" || text == "-inf") return text == "inf" ? INFINITY : -INFINITY;
  return NumberAt(json, "loss");
}

// The keys "validation_f1_macro" of an evaluation, but for loss and accuracy.
NamedMetrics ReadMetrics(const Json& json, const std::string& data) {
  NamedMetrics metrics;
  for (const auto& [key, value] : json.items()) {
    if (!key.starts_with(data + "_") || !value.is_number()) continue;
    const std::string name = key.substr(data.size() + 1);
    if (name != "loss" && name != "accuracy") metrics.emplace_back(name, value.get<double>());
  }
  return metrics;
}

StageSeconds ReadStages(const Json& json) {
  StageSeconds stages;
  for (size_t s = 0; s < kInputStages; ++s)
    stages.seconds[s] = OptionalAt(json, InputStageName(static_cast<InputStage>(s))).value_or(0);
  return stages;
}

DeviceCounters ReadCounters(const Json& json) {
  DeviceCounters gpu;
  for (const CounterField& field : kCounterFields) gpu.*field.value = OptionalAt(json, field.name);
  return gpu;
}

MetricsReport ReadReport(const Json& json) {
  MetricsReport report;
  report.step = json.at("step").get_ref<const int64_t&>();  // throws for 1e99
  if (json.contains("epoch")) report.epoch = json.at("epoch").get_ref<const int64_t&>();
  report.loss = LossAt(json);
  report.accuracy = OptionalAt(json, "accuracy");
  report.lr = NumberAt(json, "lr");
  report.samples_s = NumberAt(json, "samples_s");
  report.input_wait = NumberAt(json, "input_wait");
  report.step_s = NumberAt(json, "step_s");
  if (const auto scale = OptionalAt(json, "loss_scale"))
    report.loss_scaling = {*scale, json.value("skipped_steps", int64_t{0})};
  if (json.contains("input_stages")) report.input_stages = ReadStages(json.at("input_stages"));
  if (json.contains("gpu")) report.gpu = ReadCounters(json.at("gpu"));
  for (const std::string data : {"validation", "test"}) {
    if (!json.contains(data + "_loss")) continue;
    report.evaluated_on = data;
    report.evaluation_loss = NumberAt(json, (data + "_loss").c_str());
    report.evaluation_accuracy = OptionalAt(json, data + "_accuracy");
    report.evaluation_metrics = ReadMetrics(json, data);
  }
  return report;
}

}  // namespace

std::optional<MetricsReport> ParseMetricsLine(const std::string& line) {
  try {
    return ReadReport(Json::parse(line));
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

Result<MetricsWriter> MetricsWriter::Create(const std::string& path) {
  RIDGE_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path, OutputFile::Mode::kReplace));
  return MetricsWriter(std::move(file));
}

Result<MetricsWriter> MetricsWriter::Resume(const std::string& path, int64_t resumed_step,
                                            bool evaluation_owed) {
  RIDGE_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path, OutputFile::Mode::kKeep));
  RIDGE_RETURN_IF_ERROR(file.CutTo(BytesToKeep(path, resumed_step, evaluation_owed)));
  return MetricsWriter(std::move(file));
}

Status MetricsWriter::Add(const MetricsReport& report) {
  return file_.Append(MetricsLine(report) + "\n");
}

Status MetricsWriter::Close() { return file_.Close(); }

}  // namespace ridge
