#include "ridge/data/container/container_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "ridge/data/spec_options.h"

namespace ridge {
namespace {

constexpr int64_t kMostClasses = int64_t{1} << 31;

// Takes ",schema=..." out of the text, up to the next ",key=".
std::string TakeSchema(std::string& text) {
  constexpr std::string_view kKey = ",schema=";
  const size_t at = text.find(kKey);
  if (at == std::string::npos) return "";
  const size_t begin = at + kKey.size();
  size_t end = begin;
  while (end < text.size()) {
    const size_t comma = std::min(text.find(',', end + 1), text.size());
    const size_t equals = text.find('=', comma), next = text.find_first_of(",:", comma + 1);
    end = comma;
    if (equals != std::string::npos && equals < next) break;
  }
  const std::string schema = text.substr(begin, end - begin);
  text.erase(at, end - at);
  return schema;
}

Result<int64_t> ParseNumber(const std::string& spec, const std::string& key,
                            const std::string& value, int64_t least, int64_t most) {
  int64_t number = 0;
  const char* end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  if (error == std::errc() && rest == end && number >= least && number <= most) return number;
  return InvalidArgument(fmt::format("data '{}': {} is '{}'; it must be a number from {} to {}",
                                     spec, key, value, least, most));
}

Status TakeOption(const std::string& spec, const std::string& key, const std::string& value,
                  ContainerOptions& options) {
  const std::vector<std::string>& pictures = PictureKeys();
  if (std::find(pictures.begin(), pictures.end(), key) != pictures.end())
    return TakePictureOption(spec, key, value, options.pictures);
  if (key == "classes") {
    RIDGE_ASSIGN_OR_RETURN(options.classes, ParseNumber(spec, key, value, 1, kMostClasses));
    return Status();
  }
  if (key == "first-label") {
    RIDGE_ASSIGN_OR_RETURN(options.first_label, ParseNumber(spec, key, value, 0, kMostClasses));
    return Status();
  }
  (key == "image" ? options.image : key == "label" ? options.label : options.json) = value;
  return Status();
}

}  // namespace

Result<ContainerOptions> ParseContainerOptions(const std::string& spec, const std::string& argument,
                                               const std::vector<std::string>& keys) {
  const bool takes_schema = std::find(keys.begin(), keys.end(), "schema") != keys.end();
  ContainerOptions options;
  std::string text = argument;
  if (takes_schema) options.schema = TakeSchema(text);
  const SpecOptions parts = SplitSpecOptions(text);
  std::vector<std::string> known = keys;
  known.insert(known.end(), PictureKeys().begin(), PictureKeys().end());
  RIDGE_RETURN_IF_ERROR(CheckSpecKeys(spec, parts, known));
  options.pattern = parts.path;
  for (const auto& [key, value] : parts.options)
    RIDGE_RETURN_IF_ERROR(TakeOption(spec, key, value, options));
  return options;
}

}  // namespace ridge
