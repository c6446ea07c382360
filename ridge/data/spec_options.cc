#include "ridge/data/spec_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

namespace ridge {
namespace {

bool IsKey(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
}

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

}  // namespace

SpecOptions SplitSpecOptions(const std::string& text) {
  SpecOptions result;
  result.path = text;
  while (!Exists(result.path)) {
    const size_t comma = result.path.rfind(',');
    const size_t equals = comma == std::string::npos ? comma : result.path.find('=', comma);
    if (equals == std::string::npos) break;
    const std::string key = result.path.substr(comma + 1, equals - comma - 1);
    if (!IsKey(key)) break;
    result.options.emplace(result.options.begin(), key, result.path.substr(equals + 1));
    result.path.resize(comma);
  }
  return result;
}

Status CheckSpecKeys(const std::string& spec, const SpecOptions& options,
                     const std::vector<std::string>& known) {
  for (const auto& [key, value] : options.options) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    return InvalidArgument(
        fmt::format("data '{}': no option '{}' (it takes: {})", spec, key, fmt::join(known, ", ")));
  }
  return Status();
}

}  // namespace ridge
