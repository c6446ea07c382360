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

[[noreturn]] void Refuse(const std::string& text) {
  throw CLI::ValidationError(text, CLI::ExitCodes::ValidationError);
}

bool MayStandInAFile(const std::string& key) {
  return key != "help" && "--" + key != kFlag && "--" + key != kSaveFlag;
}

CLI::Option* FindOption(CLI::App& app, const std::string& key) {
  if (!MayStandInAFile(key)) return nullptr;
  return app.get_option_no_throw(key == "model" ? "MODEL" : "--" + key);
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

bool IsGiven(const CLI::Option& option) {
  if (option.count() > 0) return true;
  for (const CLI::Option* other : option.get_excludes()) {
    if (other->count() > 0) return true;
  }
  return false;
}

void Apply(CLI::App& app, const CLI::ConfigItem& item, const std::string& file) {
  if (!item.parents.empty())
    Refuse(fmt::format("{}: has a section [{}]; keys stand at the top of the file", file,
                       fmt::join(item.parents, ".")));
  CLI::Option* option = FindOption(app, item.name);
  if (option == nullptr) {
    Refuse(fmt::format("{}: '{}' is no option of {}{}", file, item.name, app.get_name(),
                       DidYouMean(item.name, Keys(app))));
  }
  if (IsGiven(*option)) return;
  try {
    for (const std::string& value : item.inputs) option->add_result(value);
    option->run_callback();
  } catch (const CLI::ParseError& error) {
    Refuse(fmt::format("{} (in {})", error.what(), file));
  }
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
  if (!text.ok()) Refuse(text.status().message());
  std::istringstream lines(*text);
  std::vector<CLI::ConfigItem> items;
  try {
    items = CLI::ConfigTOML().from_config(lines);
  } catch (const std::exception& error) {
    Refuse(fmt::format("{}: no TOML: {}", file, error.what()));
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
