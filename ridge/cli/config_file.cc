#include "ridge/cli/config_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/Config.hpp>
#include <optional>
#include <sstream>
#include <string_view>
#include <type_traits>

#include "ridge/cli/flags.h"
#include "ridge/core/files.h"
#include "ridge/core/split.h"
#include "ridge/graph/suggest.h"
#include "ridge/train/options/option_table.h"

namespace ridge::cli {
namespace {

constexpr std::string_view kBlanks = " \t\r";

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

// What stands in the quotes that `text` begins with; nothing unless only a comment follows them.
std::optional<std::string> Unquoted(std::string_view text) {
  if (text.empty() || text[0] != '"') return std::nullopt;
  std::string unquoted;
  for (size_t at = 1; at < text.size(); ++at) {
    if (text[at] == '"') {
      const std::string_view rest = Trimmed(text.substr(at + 1), kBlanks);
      if (rest.empty() || rest[0] == '#') return unquoted;
      return std::nullopt;
    }
    if (text[at] != '\\') {
      unquoted += text[at];
      continue;
    }
    constexpr std::string_view kEscapes = "\"\\nt", kMeanings = "\"\\\n\t";
    const size_t escape = at + 1 < text.size() ? kEscapes.find(text[++at]) : std::string_view::npos;
    if (escape == std::string_view::npos) return std::nullopt;
    unquoted += kMeanings[escape];
  }
  return std::nullopt;
}

// Takes lines KEY = "TEXT" out of `text`: CLI11 neither unescapes a single string nor lets it hold
// a '#'.
std::vector<CLI::ConfigItem> TakeStrings(std::string& text) {
  std::vector<CLI::ConfigItem> items;
  std::string others, line;
  bool in_section = false;
  for (std::istringstream lines(text); std::getline(lines, line); others += line + "\n") {
    const size_t equals = line.find('=');
    in_section = in_section || Trimmed(line, kBlanks).starts_with('[');
    if (equals == std::string::npos || in_section) continue;
    const std::string_view key = Trimmed(std::string_view(line).substr(0, equals), kBlanks);
    const auto value = Unquoted(Trimmed(std::string_view(line).substr(equals + 1), kBlanks));
    if (!value || key.empty() || key.find_first_of("\"'#;[,") != std::string_view::npos) continue;
    CLI::ConfigItem item;
    item.name = key;
    item.inputs = {*value};
    items.push_back(std::move(item));
    line.clear();
  }
  text = others;
  return items;
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
  Result<std::string> text = ReadFile(file, kMostBytes);
  if (!text.ok()) RefuseFlag(text.status().message());
  std::vector<CLI::ConfigItem> items = TakeStrings(*text);
  std::istringstream lines(*text);
  try {
    for (CLI::ConfigItem& item : CLI::ConfigTOML().from_config(lines))
      items.push_back(std::move(item));
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
    if (option.key == "batch" && flags.batch_per_device) {
      text += fmt::format("batch-per-device = {}\n", *flags.batch_per_device);
      return;
    }
    text += fmt::format("{}{} = {}\n", flags.Has(option.key) ? "" : "# ", option.key, value);
  });
  return text;
}

}  // namespace ridge::cli
