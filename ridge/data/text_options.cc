#include "ridge/data/text_options.h"

#include <fmt/format.h>

#include <charconv>

#include "ridge/data/spec_options.h"

namespace ridge {
namespace {

constexpr int64_t kMostLength = 1 << 20;

Status TakeLength(const std::string& spec, const std::string& value, TextOptions& options) {
  int64_t length = 0;
  const char* end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, length);
  if (error != std::errc() || rest != end || length < 1 || length > kMostLength) {
    return InvalidArgument(fmt::format("data '{}': length is '{}'; it takes 1 to {} tokens", spec,
                                       value, kMostLength));
  }
  options.length = length;
  return Status();
}

Status TakePacking(const std::string& spec, const std::string& value, TextOptions& options) {
  options.packing = value == "on";
  if (options.packing || value == "off") return Status();
  return InvalidArgument(
      fmt::format("data '{}': packing is '{}'; it takes on or off", spec, value));
}

}  // namespace

Result<TextOptions> ParseTextOptions(const std::string& spec, const std::string& argument,
                                     bool json_lines) {
  const SpecOptions split = SplitSpecOptions(argument);
  RIDGE_RETURN_IF_ERROR(CheckSpecKeys(
      spec, split, {"tokenizer", "length", "label", "packing", json_lines ? "text" : "record"}));
  TextOptions options;
  options.path = split.path;
  for (const auto& [key, value] : split.options) {
    if (value.empty()) return InvalidArgument(fmt::format("data '{}': {}= is empty", spec, key));
    if (key == "tokenizer") options.tokenizer = value;
    if (key == "label") options.label = value;
    if (key == "record") options.record = value;
    if (key == "text") options.text = value;
    if (key == "packing") RIDGE_RETURN_IF_ERROR(TakePacking(spec, value, options));
    if (key == "length") RIDGE_RETURN_IF_ERROR(TakeLength(spec, value, options));
  }
  const bool known = options.label.empty() || options.label == "file" ||
                     options.label == "folder" || options.label == "none";
  if (json_lines || known) return options;
  return InvalidArgument(
      fmt::format("data '{}': label is '{}'; it takes file, folder or none", spec, options.label));
}

}  // namespace ridge
