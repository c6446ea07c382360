#include "ridge/models/config/config_file.h"

#include <fmt/format.h>

#include "ridge/core/files.h"
#include "ridge/core/glob.h"

namespace ridge {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 20;

// In one short line.
std::string ValueText(const nlohmann::json& value) {
  constexpr size_t kMost = 60;
  std::string text =
      value.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

}  // namespace

Result<ConfigFile> ConfigFile::Open(const std::string& path) {
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostBytes));
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Status(ErrorCode::kInvalidData, path + ": is no JSON object");
  return ConfigFile(path, std::move(json));
}

const nlohmann::json* ConfigFile::Find(const std::string& key) {
  known_.insert(key);
  const auto found = json_.find(key);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

Result<std::optional<int64_t>> ConfigFile::Integer(const std::string& key) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return {std::nullopt};
  if (!value->is_number_integer()) return WrongType(key, "an integer");
  return {value->get<int64_t>()};
}

Result<std::optional<double>> ConfigFile::Real(const std::string& key) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return {std::nullopt};
  if (!value->is_number()) return WrongType(key, "a number");
  return {value->get<double>()};
}

Result<std::optional<std::string>> ConfigFile::Text(const std::string& key) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return {std::nullopt};
  if (!value->is_string()) return WrongType(key, "a text");
  return {value->get<std::string>()};
}

void ConfigFile::Ignore(const std::string& pattern) {
  for (const auto& [key, value] : json_.items()) {
    if (MatchesPattern(key, pattern)) known_.insert(key);
  }
}

Status ConfigFile::CheckAllKnown(const std::string& model) const {
  for (const auto& [key, value] : json_.items()) {
    if (known_.contains(key)) continue;
    return Status(ErrorCode::kUnsupported,
                  fmt::format("{}: {} is {}; what it changes in '{}' is not known. hint: delete "
                              "the key if it changes nothing",
                              path_, key, ValueText(value), model));
  }
  return Status();
}

Status ConfigFile::Unsupported(const std::string& key, const std::string& what) const {
  const auto found = json_.find(key);
  const std::string value = found == json_.end() ? "absent" : ValueText(*found);
  return Status(ErrorCode::kUnsupported, fmt::format("{}: {} is {}; {}", path_, key, value, what));
}

Status ConfigFile::WrongType(const std::string& key, const char* wanted) const {
  return Status(ErrorCode::kInvalidModel, fmt::format("{}: {} is {}; it must be {}", path_, key,
                                                      ValueText(json_.at(key)), wanted));
}

}  // namespace ridge
