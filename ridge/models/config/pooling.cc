#include "ridge/models/config/pooling.h"

#include <fmt/format.h>

#include <filesystem>

#include "ridge/core/files.h"
#include "ridge/models/config/config_file.h"

namespace ridge {
namespace {

constexpr int64_t kMostModuleBytes = int64_t{1} << 20;

struct Module {
  std::string type, path;
};

Result<std::vector<Module>> ReadModules(const std::string& file) {
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kMostModuleBytes));
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  std::vector<Module> modules;
  for (const nlohmann::json& entry : json) {
    const bool fits = entry.is_object() && entry.contains("type") && entry["type"].is_string() &&
                      entry.contains("path") && entry["path"].is_string();
    if (!fits) return Status(ErrorCode::kInvalidData, file + ": is no list of modules");
    modules.push_back({entry["type"].get<std::string>(), entry["path"].get<std::string>()});
  }
  return modules;
}

// The mode whose key is true.
Result<std::string> ReadMode(const std::string& path) {
  RIDGE_ASSIGN_OR_RETURN(ConfigFile config, ConfigFile::Open(path));
  const auto is_true = [&](const char* mode) {
    const nlohmann::json* value = config.Find(std::string("pooling_mode_") + mode);
    return value != nullptr && value->is_boolean() && value->get<bool>();
  };
  const bool mean = is_true("mean_tokens"), first = is_true("cls_token");
  for (const char* mode :
       {"max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"}) {
    if (is_true(mode)) {
      return config.Unsupported(std::string("pooling_mode_") + mode,
                                "hint: FOLDER:pooling=mean pools otherwise");
    }
  }
  if (mean != first) return std::string(mean ? "mean" : "first");
  return config.Unsupported("pooling_mode_mean_tokens",
                            "one of it and pooling_mode_cls_token must be true. hint: "
                            "FOLDER:pooling=mean");
}

}  // namespace

Result<std::optional<std::string>> FindPooling(const std::string& folder,
                                               std::vector<std::string>& notes) {
  const std::string file = folder + "/modules.json";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return {std::nullopt};
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Module> modules, ReadModules(file));
  std::optional<std::string> mode;
  for (const Module& module : modules) {
    if (module.type.ends_with(".Pooling")) {
      RIDGE_ASSIGN_OR_RETURN(mode, ReadMode(folder + "/" + module.path + "/config.json"));
    } else if (!module.type.ends_with(".Transformer")) {
      notes.push_back(fmt::format("{}: {} is left out: the head reads the pooled vector as it is",
                                  file, module.type));
    }
  }
  return mode;
}

}  // namespace ridge
