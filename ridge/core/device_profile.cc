#include "ridge/core/device_profile.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace ridge {
namespace {

using Json = nlohmann::json;

Json CurvesToJson(const std::map<std::string, std::vector<EfficiencyPoint>>& curves) {
  Json json = Json::object();
  for (const auto& [name, points] : curves) {
    for (const EfficiencyPoint& point : points)
      json[name].push_back({{"flops", point.flops}, {"efficiency", point.efficiency}});
  }
  return json;
}

void ReadCurves(const Json& json, DeviceProfile& profile) {
  for (const auto& [name, points] : json.items()) {
    for (const Json& point : points)
      profile.efficiency[name].push_back({point.at("flops"), point.at("efficiency")});
  }
}

DeviceProfile ReadProfile(const Json& json) {
  DeviceProfile profile;
  profile.id = json.at("id");
  profile.name = json.at("name");
  profile.threads = json.at("threads");
  for (const auto& [dtype, facts] : json.at("dtypes").items())
    profile.peak_flops_per_s[dtype] = facts.at("peak_flops_per_s");
  for (const Json& level : json.at("memory")) {
    profile.memory.push_back(
        {level.at("level"), level.at("capacity_bytes"), level.at("bytes_per_s")});
  }
  profile.launch_s = json.at("launch_s");
  ReadCurves(json.at("efficiency"), profile);
  profile.kernel_s = json.at("kernel_s").get<std::map<std::string, double>>();
  profile.runtime_bytes = json.at("runtime_bytes");
  profile.bytes_per_kernel = json.at("bytes_per_kernel");
  profile.quick = json.at("quick");
  profile.made_at = json.at("made_at");
  return profile;
}

}  // namespace

std::string ProfileToJson(const DeviceProfile& profile) {
  Json json;
  json["id"] = profile.id;
  json["name"] = profile.name;
  json["threads"] = profile.threads;
  json["dtypes"] = Json::object();
  for (const auto& [dtype, peak] : profile.peak_flops_per_s)
    json["dtypes"][dtype]["peak_flops_per_s"] = peak;
  json["memory"] = Json::array();
  for (const MemoryLevel& level : profile.memory) {
    json["memory"].push_back({{"level", level.level},
                              {"capacity_bytes", level.capacity_bytes},
                              {"bytes_per_s", level.bytes_per_s}});
  }
  json["launch_s"] = profile.launch_s;
  json["efficiency"] = CurvesToJson(profile.efficiency);
  json["kernel_s"] = profile.kernel_s;
  json["runtime_bytes"] = profile.runtime_bytes;
  json["bytes_per_kernel"] = profile.bytes_per_kernel;
  json["quick"] = profile.quick;
  json["made_at"] = profile.made_at;
  return json.dump(1) + "\n";
}

Result<DeviceProfile> ProfileFromJson(const std::string& text, const std::string& file) {
  try {
    return ReadProfile(Json::parse(text));
  } catch (const Json::exception& error) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: is not a device profile ({}). hint: ridge bench device", file,
                              error.what()));
  }
}

}  // namespace ridge
