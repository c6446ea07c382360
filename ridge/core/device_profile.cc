#include "ridge/core/device_profile.h"

#include <fmt/format.h>

#include <algorithm>
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

Json RatesToJson(const std::map<std::string, std::vector<KernelRate>>& rates) {
  Json json = Json::object();
  for (const auto& [kernel, points] : rates) {
    for (const KernelRate& point : points)
      json[kernel].push_back({{"work", point.work}, {"per_s", point.per_s}});
  }
  return json;
}

void ReadRates(const Json& json, DeviceProfile& profile) {
  for (const auto& [kernel, points] : json.items()) {
    for (const Json& point : points)
      profile.kernel_rates[kernel].push_back({point.at("work"), point.at("per_s")});
  }
}

constexpr int kFormat = 2;  // 1: without steadiness

Json SteadinessToJson(const Steadiness& steadiness) {
  if (!steadiness.known) return nullptr;
  return {{"processor_share", steadiness.processor_share},
          {"spread", steadiness.spread},
          {"others_share", steadiness.others_share}};
}

Steadiness ReadSteadiness(const Json& json) {
  if (json.is_null()) return {};
  return {true, json.at("processor_share"), json.at("spread"), json.at("others_share")};
}

DeviceProfile ReadProfile(const Json& json) {
  DeviceProfile profile;
  profile.id = json.at("id");
  profile.name = json.at("name");
  profile.instructions = json.value("instructions", "");
  profile.threads = json.at("threads");
  for (const auto& [dtype, facts] : json.at("dtypes").items())
    profile.peak_flops_per_s[dtype] = facts.at("peak_flops_per_s");
  for (const Json& level : json.at("memory")) {
    profile.memory.push_back(
        {level.at("level"), level.at("capacity_bytes"), level.at("bytes_per_s")});
  }
  profile.launch_s = json.at("launch_s");
  profile.host_link_bytes_per_s = json.value("host_link_bytes_per_s", 0.0);
  ReadCurves(json.at("efficiency"), profile);
  if (json.contains("kernel_rates")) ReadRates(json.at("kernel_rates"), profile);
  profile.kernel_s = json.at("kernel_s").get<std::map<std::string, double>>();
  profile.runtime_bytes = json.at("runtime_bytes");
  profile.bytes_per_kernel = json.at("bytes_per_kernel");
  profile.quick = json.at("quick");
  profile.made_at = json.at("made_at");
  if (json.value("format", 1) < kFormat) return profile;
  profile.steadiness = ReadSteadiness(json.at("steadiness"));
  profile.contradicted = json.at("contradicted");
  profile.confirmed = json.at("confirmed");
  return profile;
}

}  // namespace

bool IsSteady(const Steadiness& steadiness) {
  constexpr double kLeastProcessor = 0.9, kMostSpread = 0.1, kMostOthers = 0.1;
  return steadiness.known && steadiness.processor_share >= kLeastProcessor &&
         steadiness.spread <= kMostSpread && steadiness.others_share <= kMostOthers;
}

std::string SteadinessText(const Steadiness& steadiness) {
  if (!steadiness.known) return "nobody looked how busy the machine was";
  if (IsSteady(steadiness)) return "the machine was quiet";
  return fmt::format("other processes took {:.0f} % of the cores, kernels had {:.0f} % of them",
                     100 * steadiness.others_share,
                     100 * std::min(1.0, steadiness.processor_share));
}

bool IsTrusted(const DeviceProfile& profile) {
  return IsSteady(profile.steadiness) && (!profile.contradicted || profile.confirmed);
}

std::string DistrustReason(const DeviceProfile& profile) {
  return IsSteady(profile.steadiness) ? "kernels took other times"
                                      : SteadinessText(profile.steadiness);
}

bool Agree(const DeviceProfile& a, const DeviceProfile& b) {
  constexpr double kMost = 4.0 / 3;
  const auto near = [](double x, double y) { return x <= kMost * y && y <= kMost * x; };
  if (a.memory.size() != b.memory.size()) return false;
  for (const auto& [dtype, peak] : a.peak_flops_per_s) {
    const auto other = b.peak_flops_per_s.find(dtype);
    if (other == b.peak_flops_per_s.end() || !near(peak, other->second)) return false;
  }
  for (size_t i = 0; i < a.memory.size(); ++i) {
    if (!near(a.memory[i].bytes_per_s, b.memory[i].bytes_per_s)) return false;
  }
  return true;
}

std::string ProfileToJson(const DeviceProfile& profile) {
  Json json;
  json["format"] = kFormat;
  json["id"] = profile.id;
  json["name"] = profile.name;
  if (!profile.instructions.empty()) json["instructions"] = profile.instructions;
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
  if (profile.host_link_bytes_per_s > 0)
    json["host_link_bytes_per_s"] = profile.host_link_bytes_per_s;
  json["efficiency"] = CurvesToJson(profile.efficiency);
  json["kernel_rates"] = RatesToJson(profile.kernel_rates);
  json["kernel_s"] = profile.kernel_s;
  json["runtime_bytes"] = profile.runtime_bytes;
  json["bytes_per_kernel"] = profile.bytes_per_kernel;
  json["quick"] = profile.quick;
  json["made_at"] = profile.made_at;
  json["steadiness"] = SteadinessToJson(profile.steadiness);
  json["contradicted"] = profile.contradicted;
  json["confirmed"] = profile.confirmed;
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
