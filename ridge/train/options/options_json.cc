#include <fmt/format.h>

#include <concepts>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "ridge/graph/base64.h"
#include "ridge/partition/layouts.h"
#include "ridge/train/options/option_table.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const Json& value) { return value; }

// A path may be any bytes, a text of JSON may not: what is not UTF-8 is {"base64": ".."}.
template <std::same_as<std::string> T>
Json ToJson(const T& text) {
  const Json json(text);
  const std::string shown = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (Json::parse(shown).get<std::string>() == text) return json;
  return {{"base64", EncodeBase64({reinterpret_cast<const uint8_t*>(text.data()), text.size()})}};
}
template <typename T>
Json ToJson(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <std::same_as<Interval> T>
Json ToJson(const T& interval) {
  return interval.seconds > 0 ? Json(IntervalText(interval)) : Json(interval.steps);
}

template <typename T>
void FromJson(const Json& json, T& value) {
  value = json.get<T>();
}

void FromJson(const Json& json, std::string& value) {
  if (!json.is_object()) {
    value = json.get<std::string>();
    return;
  }
  const auto bytes = DecodeBase64(json.at("base64").get<std::string>());
  value = bytes ? std::string(bytes->begin(), bytes->end()) : "";
}

template <typename T>
void FromJson(const Json& json, std::optional<T>& value) {
  if (!json.is_null()) value = json.get<T>();
}

void FromJson(const Json& json, Interval& value) {
  value = json.is_string() ? Interval() : Interval(json.get<int64_t>());
  if (!json.is_string()) return;
  if (const auto read = ParseInterval("", json.get<std::string>()); read.ok()) value = *read;
}

Json OptionsJson(const TrainOptions& options) {
  Json json = Json::object();
  ForEachOption([&](const OptionInfo& option, auto get) {
    json[std::string(option.key)] = ToJson(get(options));
  });
  return json;
}

template <typename T>
void Read(const Json& json, const OptionInfo& option, T& value) {
  const std::string key(option.key);
  if (json.contains(key) || option.lacking == nullptr) {
    FromJson(json.at(key), value);
  } else if (*option.lacking != '\0') {
    if constexpr (std::is_same_v<T, std::string>) value = option.lacking;
  }
}

template <typename T>
bool MayGoOn(const OptionInfo& option, const T& before, const T& now) {
  switch (option.on_resume) {
    case OnResume::kTaken:
    case OnResume::kTotal:
    case OnResume::kIgnored:
      return true;
    case OnResume::kSameOrAuto:
      if constexpr (std::is_same_v<T, std::string>) return now == before || now == "auto";
      if constexpr (std::is_same_v<T, std::vector<std::string>>)
        return now == before || now == T{"auto"};
      [[fallthrough]];
    case OnResume::kSame:
      return now == before;
  }
  return false;
}

}  // namespace

std::string OptionsToJson(const TrainOptions& options) {
  return OptionsJson(options).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<TrainOptions> OptionsFromJson(const std::string& text, const std::string& file) {
  TrainOptions options;
  try {
    const Json json = Json::parse(text);
    ForEachOption([&](const OptionInfo& option, auto get) { Read(json, option, get(options)); });
  } catch (const Json::exception& error) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: not the options of a run: {}", file, error.what()));
  }
  return options;
}

Result<TrainOptions> MergeResumed(const TrainOptions& stored, const TrainOptions& given,
                                  const std::set<std::string>& names) {
  const auto is_start = [&](std::string_view key) {  // the run that it began with
    return key == "model" && stored.start.starts_with(given.model + "/checkpoints/");
  };
  TrainOptions merged = stored;
  if (names.contains("epochs")) merged.steps.reset();
  if (names.contains("steps")) merged.epochs.reset();
  Status status;
  ForEachOption([&](const OptionInfo& option, auto get) {
    const auto &before = get(stored), &now = get(given);
    if (!status.ok() || !names.contains(std::string(option.key)) || is_start(option.key)) return;
    if (option.on_resume == OnResume::kTaken || option.on_resume == OnResume::kTotal)
      get(merged) = now;
    if (MayGoOn(option, before, now)) return;
    status = InvalidArgument(
        fmt::format("--{} is {}; the run was started with {}. hint: leave it out, or "
                    "start a new run with another --out",
                    option.key, ToJson(now).dump(), ToJson(before).dump()));
  });
  RIDGE_RETURN_IF_ERROR(status);
  const Result<Mesh> mesh = ParseMesh(merged.mesh);
  const bool stages = mesh.ok() && mesh->Find(kPipelineAxis) >= 0;
  if (!stages && !names.contains("pipeline")) merged.pipeline.clear();  // of the mesh before
  return merged;
}

}  // namespace ridge
