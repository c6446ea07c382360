#include "ridge/cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include "ridge/cli/flags.h"

namespace ridge::cli {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kWidestLeft = 26;  // longer ones get their own line
constexpr size_t kManyOptions = 25;

// In the order of the short help.
constexpr std::string_view kEveryday[] = {
    "data",     "data-size", "validation", "batch",   "epochs", "optimizer",  "lr",
    "schedule", "seed",      "device",     "threads", "fit",    "out",        "resume",
    "patience", "among",     "deadline",   "budget",  "buy",    "frameworks", "why",
    "html",     "json",      "config",     "quiet",   "help"};

using Row = std::pair<std::string, std::string>;  // "--batch N", "Samples per step"

// `text` in lines of at most `columns`, split at blanks.
std::vector<std::string> Wrap(const std::string& text, size_t columns) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (lines.empty() || lines.back().size() + 1 + word.size() > columns) {
      lines.push_back(word);
    } else {
      lines.back() += " " + word;
    }
  }
  if (lines.empty()) lines.emplace_back();
  return lines;
}

std::string Rows(const std::vector<Row>& rows) {
  size_t left = 0;
  for (const Row& row : rows) {
    if (row.first.size() <= kWidestLeft) left = std::max(left, row.first.size());
  }
  std::string out;
  for (const Row& row : rows) {
    std::string head = row.first;
    if (head.size() > left) {
      out += fmt::format("  {}\n", head);
      head.clear();
    }
    for (const std::string& line : Wrap(row.second, kColumns - left - 4)) {
      out += fmt::format("  {:<{}}  {}\n", head, left, line);
      head.clear();
    }
  }
  return out;
}

std::string Section(const std::string& title, const std::vector<Row>& rows) {
  return rows.empty() ? "" : fmt::format("\n{}:\n{}", title, Rows(rows));
}

std::string OptionHead(const CLI::Option& option) {
  std::string head;
  for (const std::string& name : option.get_snames()) head += "-" + name + ", ";
  for (const std::string& name : option.get_lnames()) head += "--" + name;
  if (option.get_type_size() > 0) head += " " + option.get_type_name();
  return head;
}

std::vector<Row> ArgumentRows(const CLI::App& app) {
  std::vector<Row> rows;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional())
      rows.emplace_back(option->get_type_name(), option->get_description());
  }
  return rows;
}

std::vector<Row> OptionRows(const CLI::App& app, const std::string& group) {
  std::vector<Row> rows;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() || option->get_group() != group) continue;
    rows.emplace_back(OptionHead(*option), option->get_description());
  }
  return rows;
}

size_t CountOptions(const CLI::App& app) {
  const auto options = app.get_options();
  return static_cast<size_t>(std::count_if(options.begin(), options.end(), [](const auto* option) {
    return !option->get_positional();
  }));
}

std::string ShortOptions(const CLI::App& app, const std::string& name) {
  std::vector<Row> rows;
  for (const std::string_view key : kEveryday) {
    const CLI::Option* option = app.get_option_no_throw(fmt::format("--{}", key));
    if (option != nullptr) rows.emplace_back(OptionHead(*option), option->get_description());
  }
  return Section("Options", rows) +
         fmt::format("\n{} --help all lists all {} options.\n", name, CountOptions(app));
}

std::string AllOptions(const CLI::App& app) {
  std::string text;
  for (const std::string& group : app.get_groups()) text += Section(group, OptionRows(app, group));
  return text;
}

std::string Usage(const CLI::App& app, const std::string& name) {
  std::string usage = name;
  if (!app.get_subcommands({}).empty()) usage += " COMMAND";
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) usage += " " + option->get_type_name();
  }
  return usage + " [options]";
}

std::string Examples(const CLI::App& app) {
  std::string out = "\nExamples:\n";
  std::istringstream lines(app.get_footer());
  for (std::string line; std::getline(lines, line);) out += fmt::format("  {}\n", line);
  return out;
}

bool HasEnvironment(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (!EnvironmentName(*option).empty()) return true;
  }
  return false;
}

}  // namespace

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode /*mode*/) const {
  std::string out;
  for (const std::string& line : Wrap(app->get_description(), kColumns)) out += line + "\n";
  out += fmt::format("\nUsage: {}\n", Usage(*app, name));
  std::vector<Row> verbs;
  for (const CLI::App* verb : app->get_subcommands({})) {
    verbs.emplace_back(verb->get_name(), verb->get_description());
  }
  out += Section("Commands", verbs);
  out += Section("Arguments", ArgumentRows(*app));
  const bool brief = !all_ && CountOptions(*app) > kManyOptions;
  out += brief ? ShortOptions(*app, name) : AllOptions(*app);
  if (!app->get_footer().empty()) out += Examples(*app);
  if (HasEnvironment(*app)) {
    out +=
        "\nEvery option has an environment variable too, such as RIDGE_THREADS for --threads;\n"
        "the option wins.\n";
  }
  return out;
}

}  // namespace ridge::cli
