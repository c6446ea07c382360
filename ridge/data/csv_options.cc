#include "ridge/data/csv_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ridge/data/spec_options.h"

namespace ridge {
namespace {

template <typename T>
struct Choice {
  std::string word;
  T value;
};

template <typename T, typename To>
Status Choose(const std::string& spec, const std::string& key, const std::string& text,
              const std::vector<Choice<T>>& choices, To& to) {
  std::vector<std::string> words;
  for (const Choice<T>& choice : choices) {
    if (choice.word != text) {
      words.push_back(choice.word);
      continue;
    }
    to = choice.value;
    return Status();
  }
  return InvalidArgument(fmt::format("data '{}': {} is '{}'; it must be one of {}", spec, key, text,
                                     fmt::join(words, ", ")));
}

}  // namespace

Status TakeCsvOption(const std::string& spec, const std::string& key, const std::string& value,
                     CsvOptions& options) {
  const std::vector<Choice<bool>> yes_no = {{"yes", true}, {"no", false}};
  if (key == "delimiter") {
    return Choose<char>(spec, key, value,
                        {{"comma", ','}, {"semicolon", ';'}, {"tab", '\t'}, {"pipe", '|'}},
                        options.format.delimiter);
  }
  if (key == "decimal") {
    return Choose<bool>(spec, key, value, {{"point", false}, {"comma", true}},
                        options.format.decimal_comma);
  }
  if (key == "header") return Choose<bool>(spec, key, value, yes_no, options.format.has_header);
  if (key == "standardize") return Choose<bool>(spec, key, value, yes_no, options.standardize);
  if (value.empty()) {
    return InvalidArgument(
        fmt::format("data '{}': {}= names no column. hint: {}=NAME", spec, key, key));
  }
  if (key == "label") options.label = value;
  if (key == "drop") options.drop.push_back(value);
  if (key == "category") options.category.push_back(value);
  if (key == "number") options.number.push_back(value);
  return Status();
}

Result<CsvOptions> ParseCsvOptions(const std::string& spec, const std::string& argument) {
  const SpecOptions parsed = SplitSpecOptions(argument);
  RIDGE_RETURN_IF_ERROR(CheckSpecKeys(
      spec, parsed,
      {"delimiter", "decimal", "header", "label", "drop", "category", "number", "standardize"}));
  CsvOptions options;
  options.path = parsed.path;
  for (const auto& [key, value] : parsed.options)
    RIDGE_RETURN_IF_ERROR(TakeCsvOption(spec, key, value, options));
  return options;
}

}  // namespace ridge
