#include "ridge/cli/config_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/Config.hpp>
#include <sstream>
#include <type_traits>

#include "ridge/cli/flags.h"
#include "ridge/core/files.h"
#include "ridge/graph/suggest.h"
#include "ridge/train/options/option_table.h"

namespace ridge::cli {
namespace {

constexpr char kFlag[] = "--config", kSaveFlag[] = "--save-config";
constexpr int64_t kMostBytes = int64_t{1} << 20;

bool MayStandInAFile(const std::string& key) {
  return key != "help" && key != "sweep" && "--" + key != kFlag && "--" + key != kSaveFlag;
}

std::vector<std::string> Keys(const CLI::App& app) {
  std::vector<std::string> keys = {"model"};
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (MayStandInAFile(name)) keys.push_back(name);
    }
  }
  return keys;
}

void Apply(CLI::App& app, const CLI::ConfigItem& item, const std::string& file) {
  if (!item.parents.empty())
    RefuseFlag(fmt::format("{}: has a section [{}]; keys stand at the top of the file", file,
                           fmt::join(item.parents, ".")));
  CLI::Option* option = MayStandInAFile(item.name) ? FindFlag(app, item.name) : nullptr;
  if (option == nullptr) {
    RefuseFlag(fmt::format("{}: '{}' is no option of {}{}", file, item.name, app.get_name(),
                           DidYouMean(item.name, Keys(app))));
  }
  GiveUnlessGiven(*option, item.inputs, "in " + file);
}

// A basic string of TOML.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

// "" where the option has no value.
template <typename T>
std::string ValueText(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return value.empty() ? "" : Quoted(value);
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    std::vector<std::string> quoted;
    for (const std::string& text : value) quoted.push_back(Quoted(text));
    return value.empty() ? "" : fmt::format("[{}]", fmt::join(quoted, ", "));
  } else if constexpr (std::is_same_v<T, Interval>) {
    return value.seconds > 0 ? Quoted(IntervalText(value)) : IntervalText(value);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return fmt::format("{}", value);
  } else {
    return value ? fmt::format("{}", *value) : "";
  }
}

}  // namespace

void AddConfigFlag(CLI::App& app) {
  const auto later = [](const std::string&) {};  // ApplyConfig reads it when all flags are known
  AddText(app, kFlag, later, "FILE",
          "Options from a TOML file; the command line and the environment win")
      ->group(kOutputGroup);
}

void AddSaveConfigFlag(CLI::App& app, std::optional<std::string>& to) {
  AddText(app, kSaveFlag, to, "FILE", "Writes these options for --config, and ends")
      ->group(kOutputGroup);
}

void ApplyConfig(CLI::App& app) {
  const CLI::Option* flag = app.get_option_no_throw(kFlag);
  if (flag == nullptr || flag->count() == 0) return;
  const std::string file = flag->results().back();
  const Result<std::string> text = ReadFile(file, kMostBytes);
  if (!text.ok()) RefuseFlag(text.status().message());
  std::istringstream lines(*text);
  std::vector<CLI::ConfigItem> items;
  try {
    items = CLI::ConfigTOML().from_config(lines);
  } catch (const std::exception& error) {
    RefuseFlag(fmt::format("{}: no TOML: {}", file, error.what()));
  }
  for (const CLI::ConfigItem& item : items) Apply(app, item, file);
}

std::string ConfigText(const TrainFlags& flags) {
  std::string text = "# ridge train --config FILE\n";
  OptionGroup group = OptionGroup::kNone;
  ForEachOption([&](const OptionInfo& option, auto get) {
    if (option.group == OptionGroup::kNone && option.key != "model") return;
    const std::string value = ValueText(get(flags.options));
    if (value.empty()) return;
    if (option.group != group) text += "\n";
    group = option.group;
    text += fmt::format("{}{} = {}\n", flags.Has(option.key) ? "" : "# ", option.key, value);
  });
  return text;
}

}  // namespace ridge::cli
