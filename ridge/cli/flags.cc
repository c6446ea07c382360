// Flags: CLI11 splits the command line; values are checked here, because CLI11 reports "Could not
// convert" where our messages name the accepted values.
#include "ridge/cli/flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "ridge/core/units.h"
#include "ridge/graph/suggest.h"

namespace ridge::cli {
namespace {

std::string LongName(const std::string& names) {
  const size_t comma = names.find(',');
  return comma == std::string::npos ? names : names.substr(comma + 1);
}

std::string RangeText(const IntegerRange& range) {
  if (range.maximum == INT64_MAX) return fmt::format("of at least {}", range.minimum);
  return fmt::format("from {} to {}", range.minimum, range.maximum);
}

int64_t ParseInteger(const std::string& name, const std::string& text, const IntegerRange& range) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || value < range.minimum || value > range.maximum) {
    RefuseFlag(fmt::format("{} is {}; it must be a whole number {}", name,
                           whole ? text : fmt::format("'{}'", text), RangeText(range)));
  }
  return value;
}

std::string RangeText(const NumberRange& range) {
  std::string text = range.minimum_allowed ? fmt::format("of at least {}", range.minimum)
                                           : fmt::format("above {}", range.minimum);
  if (range.maximum < 1e300) text += fmt::format(" and at most {}", range.maximum);
  return text;
}

double ParseNumber(const std::string& name, const std::string& text, const NumberRange& range) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool number =
      error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
  const bool inside = value <= range.maximum &&
                      (range.minimum_allowed ? value >= range.minimum : value > range.minimum);
  if (!number || !inside) {
    RefuseFlag(fmt::format("{} is {}; it must be a number {}", name,
                           number ? text : fmt::format("'{}'", text), RangeText(range)));
  }
  return value;
}

std::string ParseChoice(const std::string& name, const std::string& text,
                        const std::vector<std::string>& choices) {
  for (const std::string& choice : choices) {
    if (choice == text) return text;
  }
  RefuseFlag(fmt::format("{} is '{}'; it must be one of {}{}", name, text, fmt::join(choices, ", "),
                         DidYouMean(text, choices)));
}

bool IsGiven(const CLI::Option& option) {
  if (option.count() > 0) return true;
  const auto excluded = option.get_excludes();
  return std::any_of(excluded.begin(), excluded.end(),
                     [](const CLI::Option* other) { return other->count() > 0; });
}

void ApplyVariable(CLI::Option& option) {
  const std::string variable = EnvironmentName(option);
  const char* text = variable.empty() ? nullptr : std::getenv(variable.c_str());
  if (text == nullptr || *text == '\0') return;
  GiveUnlessGiven(option, {text}, "from the environment variable " + variable);
}

// An option given twice: the last one wins, so that an alias can be overridden.
CLI::Option* Add(CLI::App& app, const std::string& name, const std::string& value_name,
                 const std::string& doc, std::function<void(const std::string&)> set) {
  return app.add_option_function<std::string>(name, std::move(set), doc)
      ->type_name(value_name)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

}  // namespace

// Complete sentences: ValidationError(name, text) would put "name: " before them.
void RefuseFlag(const std::string& text) {
  throw CLI::ValidationError(text, CLI::ExitCodes::ValidationError);
}

void GiveUnlessGiven(CLI::Option& option, const std::vector<std::string>& values,
                     const std::string& source) {
  if (IsGiven(option)) return;
  try {
    for (const std::string& value : values) option.add_result(value);
    option.run_callback();
  } catch (const CLI::ParseError& error) {
    RefuseFlag(fmt::format("{} ({})", error.what(), source));
  }
}

CLI::Option* AddInteger(CLI::App& app, const std::string& name, Set<int64_t> set,
                        IntegerRange range, const std::string& value_name, const std::string& doc) {
  return Add(app, name, value_name, doc,
             [set = std::move(set), range, shown = LongName(name)](const auto& text) {
               set(ParseInteger(shown, text, range));
             });
}

CLI::Option* AddNumber(CLI::App& app, const std::string& name, Set<double> set, NumberRange range,
                       const std::string& value_name, const std::string& doc) {
  return Add(app, name, value_name, doc,
             [set = std::move(set), range, shown = LongName(name)](const auto& text) {
               set(ParseNumber(shown, text, range));
             });
}

CLI::Option* AddText(CLI::App& app, const std::string& name, Set<std::string> set,
                     const std::string& value_name, const std::string& doc) {
  return Add(app, name, value_name, doc,
             [set = std::move(set), shown = LongName(name)](const auto& text) {
               if (text.empty()) RefuseFlag(fmt::format("{} is empty", shown));
               set(text);
             });
}

CLI::Option* AddChoice(CLI::App& app, const std::string& name, Set<std::string> set,
                       const std::vector<std::string>& choices, const std::string& doc) {
  return Add(app, name, fmt::format("{}", fmt::join(choices, "|")), doc,
             [set = std::move(set), choices, shown = LongName(name)](const auto& text) {
               set(ParseChoice(shown, text, choices));
             });
}

CLI::Option* AddSize(CLI::App& app, const std::string& name, Set<int64_t> set,
                     const std::string& doc) {
  return Add(app, name, "SIZE", doc,
             [set = std::move(set), shown = LongName(name)](const auto& text) {
               const Result<int64_t> size = ParseSize(text);
               if (!size.ok()) RefuseFlag(fmt::format("{}: {}", shown, size.status().message()));
               set(*size);
             });
}

CLI::Option* AddTexts(CLI::App& app, const std::string& name, std::vector<std::string>& to,
                      const std::string& value_name, const std::string& doc) {
  return app.add_option(name, to, doc)
      ->type_name(value_name)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

CLI::Option* AddOptionalText(CLI::App& app, const std::string& name, std::optional<std::string>& to,
                             const std::string& value_name, const std::string& doc) {
  return app
      .add_option_function<std::vector<std::string>>(
          name,
          [&to](const std::vector<std::string>& values) {
            to = values.empty() ? "" : values.back();
          },
          doc)
      ->type_name(value_name)
      ->expected(0, 1);
}

CLI::Option* AddSwitch(CLI::App& app, const std::string& name, bool& to, const std::string& doc) {
  return app.add_flag(name, to, doc)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

CLI::Option* AddArgument(CLI::App& app, const std::string& name, Set<std::string> set,
                         const std::string& doc) {
  return Add(app, name, name, doc, [set = std::move(set), name](const auto& text) {
    if (text.empty()) RefuseFlag(fmt::format("{} is empty", name));
    set(text);
  });
}

void Exclude(CLI::Option* a, CLI::Option* b) { a->excludes(b); }

std::string EnvironmentName(const CLI::Option& option) {
  if (option.get_lnames().empty()) return "";
  const std::string& name = option.get_lnames().front();
  if (name == "help" || name == "version") return "";
  std::string variable = "RIDGE_";
  for (const char c : name) {
    variable += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return variable;
}

void ApplyEnvironment(CLI::App& app) {
  CLI::Option* resume = app.get_option_no_throw("--resume");
  if (resume != nullptr) ApplyVariable(*resume);
  for (CLI::Option* option : app.get_options()) {
    const bool resuming = resume != nullptr && resume->count() > 0;
    if (!resuming || option->get_group() == kOutputGroup) ApplyVariable(*option);
  }
}

Status RequireArgument(const CLI::App& app, bool given, const std::string& name,
                       const std::string& hint) {
  if (given) return {};
  return InvalidArgument(fmt::format("{}: {} is missing. hint: {}", app.get_name(), name, hint));
}

}  // namespace ridge::cli
