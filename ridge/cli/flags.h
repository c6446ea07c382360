// Flags: typed options of a verb, with our own messages, and environment variables as defaults.
//
// A flag's value is a std::optional that is empty unless given, so defaults stay in the code that
// uses them and `--resume` can distinguish a repeated option from a conflicting one.
// A flag without a value is a bool.
// A value that is not acceptable throws CLI::ValidationError, which the command line turns into
// exit 2: "--batch is 0; it must be a whole number of at least 1".
#pragma once
#include <CLI/App.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ridge/core/status.h"

namespace ridge::cli {

struct IntegerRange {
  int64_t minimum = 0;
  int64_t maximum = INT64_MAX;
};

struct NumberRange {
  double minimum = 0;
  bool minimum_allowed = true;
  double maximum = 1e300;
};

// `name` is "--batch" or "-o,--out"; `value_name` is what help and completion show: "N", "FILE",
// "DIR", "MODEL", "SPEC", or the choices as "a|b|c".
template <typename T>
using Set = std::function<void(const T&)>;
CLI::Option* AddInteger(CLI::App& app, const std::string& name, Set<int64_t> set,
                        IntegerRange range, const std::string& value_name, const std::string& doc);
CLI::Option* AddNumber(CLI::App& app, const std::string& name, Set<double> set, NumberRange range,
                       const std::string& value_name, const std::string& doc);
CLI::Option* AddText(CLI::App& app, const std::string& name, Set<std::string> set,
                     const std::string& value_name, const std::string& doc);
CLI::Option* AddChoice(CLI::App& app, const std::string& name, Set<std::string> set,
                       const std::vector<std::string>& choices, const std::string& doc);
CLI::Option* AddSize(CLI::App& app, const std::string& name, Set<int64_t> set,
                     const std::string& doc);
// May be given several times.
CLI::Option* AddTexts(CLI::App& app, const std::string& name, std::vector<std::string>& to,
                      const std::string& value_name, const std::string& doc);

// A setter for a place that is empty until the flag is given.
template <typename T>
Set<T> Into(std::optional<T>& to) {
  return [&to](const T& value) { to = value; };
}
inline CLI::Option* AddInteger(CLI::App& app, const std::string& name, std::optional<int64_t>& to,
                               IntegerRange range, const std::string& value_name,
                               const std::string& doc) {
  return AddInteger(app, name, Into(to), range, value_name, doc);
}
inline CLI::Option* AddNumber(CLI::App& app, const std::string& name, std::optional<double>& to,
                              NumberRange range, const std::string& value_name,
                              const std::string& doc) {
  return AddNumber(app, name, Into(to), range, value_name, doc);
}
inline CLI::Option* AddText(CLI::App& app, const std::string& name, std::optional<std::string>& to,
                            const std::string& value_name, const std::string& doc) {
  return AddText(app, name, Into(to), value_name, doc);
}
inline CLI::Option* AddChoice(CLI::App& app, const std::string& name,
                              std::optional<std::string>& to,
                              const std::vector<std::string>& choices, const std::string& doc) {
  return AddChoice(app, name, Into(to), choices, doc);
}

CLI::Option* AddSwitch(CLI::App& app, const std::string& name, bool& to, const std::string& doc);
// A positional argument.
CLI::Option* AddArgument(CLI::App& app, const std::string& name, Set<std::string> set,
                         const std::string& doc);
inline CLI::Option* AddArgument(CLI::App& app, const std::string& name,
                                std::optional<std::string>& to, const std::string& doc) {
  return AddArgument(app, name, Into(to), doc);
}

// Two mutually exclusive flags; the message names both.  A given one disables the environment
// variable of the other.
void Exclude(CLI::Option* a, CLI::Option* b);

// A flag with an optional value: without one `to` is "".
CLI::Option* AddOptionalText(CLI::App& app, const std::string& name, std::optional<std::string>& to,
                             const std::string& value_name, const std::string& doc);

// "RIDGE_WEIGHT_DECAY" for --weight-decay; "" for positionals and --help.
std::string EnvironmentName(const CLI::Option& option);

// Throws what the command line turns into exit 2.
[[noreturn]] void RefuseFlag(const std::string& text);

// Gives a flag these values unless it, or one that it excludes, was given.  Throws as a flag does;
// the message then names `source`: "--batch is 0; ... (in run.toml)".
void GiveUnlessGiven(CLI::Option& option, const std::vector<std::string>& values,
                     const std::string& source);

// The group of flags that change a verb's output, not its work.
inline constexpr char kOutputGroup[] = "Output";

// Gives every flag that is not on the command line the value of its environment variable; an empty
// variable counts as none.  With --resume only the flags of kOutputGroup: the run that goes on has
// its own options, and a variable that was set for others must not conflict with them.
// Throws as a flag would; the message then names the variable.
void ApplyEnvironment(CLI::App& app);

// Requires an argument of a verb.  Fails with kInvalidArgument: "train: --data is missing".
Status RequireArgument(const CLI::App& app, bool given, const std::string& name,
                       const std::string& hint);
inline Status RequireArgument(const CLI::App& app, const std::optional<std::string>& value,
                              const std::string& name, const std::string& hint) {
  return RequireArgument(app, value.has_value(), name, hint);
}

}  // namespace ridge::cli
