#include "ridge/runtime/kernel_times.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "ridge/core/files.h"
#include "ridge/runtime/profile_store.h"

namespace ridge {
namespace {

using Json = nlohmann::json;

constexpr char kHint[] = "hint: ridge bench device --tune MODEL, with this --device and --threads";

Status Unusable(const std::string& file, const std::string& why) {
  return Status(ErrorCode::kInvalidData, fmt::format("{}: {}. {}", file, why, kHint));
}

Result<KernelTimes> Parse(const std::string& text, const std::string& file) {
  try {
    const Json json = Json::parse(text);
    KernelTimes times;
    times.device = json.at("device");
    times.library = json.at("library");
    times.made_at = json.at("made_at");
    times.kernel_s = json.at("kernel_s").get<std::map<std::string, double>>();
    for (const auto& [key, seconds] : times.kernel_s) {
      if (!(seconds > 0)) return Unusable(file, fmt::format("'{}' takes {} s", key, seconds));
    }
    return times;
  } catch (const Json::exception& error) {
    return Unusable(file, fmt::format("holds no times of kernels ({})", error.what()));
  }
}

}  // namespace

std::string KernelTimesToJson(const KernelTimes& times) {
  Json json;
  json["device"] = times.device;
  json["library"] = times.library;
  json["made_at"] = times.made_at;
  json["kernel_s"] = times.kernel_s;
  return json.dump(1) + "\n";
}

Result<KernelTimes> ReadKernelTimes(const std::string& path) {
  constexpr int64_t kMostBytes = 64 << 20;
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostBytes));
  return Parse(text, path);
}

std::string KernelTimesPath(const std::string& device) {
  return ProfilesFolder() + "/" + device + ".kernels.json";
}

Result<KernelTimes> LoadKernelTimes(const std::string& device, const std::string& library) {
  const std::string path = KernelTimesPath(device);
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    return Unusable(path, "no kernels were timed on this machine yet");
  RIDGE_ASSIGN_OR_RETURN(KernelTimes times, ReadKernelTimes(path));
  if (times.device != device)
    return Unusable(path, fmt::format("was timed on '{}'; this is '{}'", times.device, device));
  if (times.library != library)
    return Unusable(path, fmt::format("was timed with {}; this is {}", times.library, library));
  return times;
}

Status SaveKernelTimes(const KernelTimes& times) {
  RIDGE_RETURN_IF_ERROR(MakeFolders(ProfilesFolder()));
  return WriteFileAtomically(KernelTimesPath(times.device), KernelTimesToJson(times));
}

}  // namespace ridge
