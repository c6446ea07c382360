#include "ridge/train/store/checkpoint_state.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ridge/core/crc32c.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

Json DigestJson(const FileDigest& digest) {
  return {{"bytes", digest.size_bytes}, {"crc32c", digest.crc32c}};
}

FileDigest ReadDigest(const Json& json) {
  return {json.at("bytes").get<int64_t>(), json.at("crc32c").get<uint32_t>()};
}

Json ScheduleJson(const ScheduleOptions& schedule) {
  return {{"name", schedule.name},
          {"lr", schedule.lr},
          {"warmup_steps", schedule.warmup_steps},
          {"total_steps", schedule.total_steps}};
}

ScheduleOptions ReadSchedule(const Json& json) {
  return {json.at("name").get<std::string>(), json.at("lr").get<double>(),
          json.at("warmup_steps").get<int64_t>(), json.at("total_steps").get<int64_t>()};
}

Json BestJson(const std::optional<BestResult>& best) {
  if (!best) return {};
  return {{"metric", best->metric}, {"value", best->value}, {"step", best->step}};
}

std::optional<BestResult> ReadBest(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return BestResult{json.at("metric").get<std::string>(), json.at("value").get<double>(),
                    json.at("step").get<int64_t>()};
}

Json WindowJson(const MetricsWindow& w) {
  return {{"steps", w.steps},     {"samples", w.samples}, {"loss_sum", w.loss_sum},
          {"correct", w.correct}, {"wait_s", w.wait_s},   {"time_s", w.time_s}};
}

MetricsWindow ReadWindow(const Json& json) {
  return {json.at("steps").get<int64_t>(),   json.at("samples").get<int64_t>(),
          json.at("loss_sum").get<double>(), json.at("correct").get<double>(),
          json.at("wait_s").get<double>(),   json.at("time_s").get<double>()};
}

Json LossSumJson(const LossSum& sum) { return {{"steps", sum.steps}, {"loss_sum", sum.loss_sum}}; }

LossSum ReadLossSum(const Json& json) {
  return {json.at("steps").get<int64_t>(), json.at("loss_sum").get<double>()};
}

Json ReportJson(const std::optional<MetricsReport>& report) {
  if (!report) return {};
  Json json = {{"step", report->step},
               {"epoch", report->epoch},
               {"loss", report->loss},
               {"accuracy", nullptr},
               {"lr", report->lr},
               {"samples_s", report->samples_s},
               {"input_wait", report->input_wait},
               {"step_s", report->step_s}};
  if (report->accuracy) json["accuracy"] = *report->accuracy;
  return json;
}

std::optional<MetricsReport> ReadReport(const Json& json) {
  if (json.is_null()) return std::nullopt;
  MetricsReport report;
  report.step = json.at("step").get<int64_t>();
  report.epoch = json.at("epoch").get<int64_t>();
  report.loss = json.at("loss").get<double>();
  if (!json.at("accuracy").is_null()) report.accuracy = json.at("accuracy").get<double>();
  report.lr = json.at("lr").get<double>();
  report.samples_s = json.at("samples_s").get<double>();
  report.input_wait = json.at("input_wait").get<double>();
  report.step_s = json.at("step_s").get<double>();
  return report;
}

Json DataJson(const DataDigest& data) {
  Json json = Json::array();
  for (const SourceDigest& source : data) {
    json.push_back({{"part", source.part}, {"samples", source.samples}, {"crc32c", source.crc32c}});
  }
  return json;
}

DataDigest ReadData(const Json& json) {
  DataDigest data;
  for (const Json& source : json) {
    data.push_back({source.at("part").get<std::string>(), source.at("samples").get<int64_t>(),
                    source.at("crc32c").get<uint32_t>()});
  }
  return data;
}

uint32_t Checksum(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return Crc32c(text);
}

CheckpointState ReadState(const Json& json) {
  CheckpointState state;
  state.step = json.at("step").get<int64_t>();
  state.position = {json.at("epoch").get<int64_t>(), json.at("next_batch").get<int64_t>()};
  state.seed = json.at("seed").get<uint64_t>();
  state.schedule = ReadSchedule(json.at("schedule"));
  state.best = ReadBest(json.at("best"));
  state.window = ReadWindow(json.at("window"));
  // Checkpoints of older versions lack these four.
  if (json.contains("evaluations")) {
    state.best_evaluation = ReadBest(json.at("evaluations").at("best"));
    state.evaluations_since_best = json.at("evaluations").at("since_best").get<int64_t>();
  }
  if (json.contains("since_checkpoint"))
    state.since_checkpoint = ReadLossSum(json.at("since_checkpoint"));
  if (json.contains("owed_evaluation"))
    state.owed_evaluation = ReadReport(json.at("owed_evaluation"));
  if (json.contains("data")) state.data = ReadData(json.at("data"));
  state.wall_s = json.at("wall_s").get<double>();
  state.model = json.at("model").get<std::string>();
  state.options_json = json.at("options").dump(2) + "\n";
  state.kernels_sha256 = json.at("kernels_sha256").get<std::string>();
  state.cpu = json.at("cpu").get<std::string>();
  if (json.contains("libraries"))
    state.libraries = json.at("libraries").get<std::vector<std::string>>();
  state.threads = json.at("threads").get<int64_t>();
  state.ridge_version = json.at("ridge_version").get<std::string>();
  state.parameters = ReadDigest(json.at("parameters"));
  state.state = ReadDigest(json.at("state"));
  return state;
}

}  // namespace

std::string CheckpointStateToJson(const CheckpointState& state) {
  Json json = Json::object();
  json["step"] = state.step;
  json["epoch"] = state.position.epoch;
  json["next_batch"] = state.position.next_batch;
  json["seed"] = state.seed;
  json["schedule"] = ScheduleJson(state.schedule);
  json["best"] = BestJson(state.best);
  json["window"] = WindowJson(state.window);
  json["since_checkpoint"] = LossSumJson(state.since_checkpoint);
  json["evaluations"] = {{"best", BestJson(state.best_evaluation)},
                         {"since_best", state.evaluations_since_best}};
  json["owed_evaluation"] = ReportJson(state.owed_evaluation);
  json["wall_s"] = state.wall_s;
  json["model"] = state.model;
  json["options"] = Json::parse(state.options_json, nullptr, /*allow_exceptions=*/false);
  json["kernels_sha256"] = state.kernels_sha256;
  json["data"] = DataJson(state.data);
  json["cpu"] = state.cpu;
  if (!state.libraries.empty()) json["libraries"] = state.libraries;
  json["threads"] = state.threads;
  json["ridge_version"] = state.ridge_version;
  json["parameters"] = DigestJson(state.parameters);
  json["state"] = DigestJson(state.state);
  json["crc32c"] = Checksum(json);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<CheckpointState> CheckpointStateFromJson(const std::string& text, const std::string& file) {
  try {
    Json json = Json::parse(text);
    const auto stored = json.at("crc32c").get<uint32_t>();
    json.erase("crc32c");
    if (Checksum(json) == stored) return ReadState(json);
    return Status(ErrorCode::kInvalidData, file + ": its checksum is wrong");
  } catch (const Json::exception& error) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: not the state of a checkpoint: {}", file, error.what()));
  }
}

}  // namespace ridge
