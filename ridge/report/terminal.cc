#include "ridge/report/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>

namespace ridge {
namespace {

constexpr int kDefaultWidth = 80;
constexpr int kSmallestWidth = 20;

std::string_view Value(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr ? std::string_view() : value;
}

bool IsForced(std::string_view value) { return !value.empty() && value != "0"; }

bool UseColour(bool is_terminal, ColourChoice choice, const Environment& environment) {
  if (choice != ColourChoice::kAuto) return choice == ColourChoice::kAlways;
  if (!Value(environment, "NO_COLOR").empty()) return false;
  if (IsForced(Value(environment, "CLICOLOR_FORCE"))) return true;
  if (IsForced(Value(environment, "FORCE_COLOR"))) return true;
  return is_terminal && Value(environment, "TERM") != "dumb";
}

bool UseUnicode(const Environment& environment) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value(Value(environment, name));
    if (value.empty()) continue;
    std::transform(value.begin(), value.end(), value.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

int ChooseWidth(int columns, std::string_view asked) {
  if (columns <= 0) std::from_chars(asked.data(), asked.data() + asked.size(), columns);
  return columns <= 0 ? kDefaultWidth : std::max(columns, kSmallestWidth);
}

const char* EscapeOf(Style style) {
  switch (style) {
    case Style::kPlain:
      return "";
    case Style::kBold:
      return "\x1b[1m";
    case Style::kDim:
      return "\x1b[2m";
    case Style::kRed:
      return "\x1b[31m";
    case Style::kGreen:
      return "\x1b[32m";
    case Style::kYellow:
      return "\x1b[33m";
    case Style::kCyan:
      return "\x1b[36m";
  }
  return "";
}

}  // namespace

Result<ColourChoice> ParseColourChoice(std::string_view text) {
  if (text == "auto") return ColourChoice::kAuto;
  if (text == "always") return ColourChoice::kAlways;
  if (text == "never") return ColourChoice::kNever;
  return InvalidArgument(fmt::format("--color '{}' is unknown; use auto, always or never", text));
}

int TerminalColumns(std::FILE* stream) {
  winsize size{};
  const bool known = ::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0;
  return known ? size.ws_col : 0;
}

Terminal DetectTerminal(std::FILE* stream, ColourChoice choice) {
  return DescribeTerminal(::isatty(::fileno(stream)) != 0, TerminalColumns(stream), choice,
                          [](const char* name) { return std::getenv(name); });
}

Terminal DescribeTerminal(bool is_terminal, int columns, ColourChoice choice,
                          const Environment& environment) {
  // Open MPI gives each rank a terminal of its own, whatever its mpirun writes to.
  is_terminal = is_terminal && Value(environment, "OMPI_COMM_WORLD_SIZE").empty();
  Terminal terminal;
  terminal.is_terminal = is_terminal && Value(environment, "TERM") != "dumb";
  terminal.colour = UseColour(is_terminal, choice, environment);
  terminal.unicode = UseUnicode(environment);
  terminal.width = ChooseWidth(columns, Value(environment, "COLUMNS"));
  return terminal;
}

std::string Styled(std::string_view text, Style style, const Terminal& terminal) {
  if (!terminal.colour || style == Style::kPlain || text.empty()) return std::string(text);
  return fmt::format("{}{}\x1b[0m", EscapeOf(style), text);
}

TextSink SinkTo(std::FILE* stream) {
  return [stream](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stream);
    std::fflush(stream);
  };
}

TextSink SinkTo(std::string* collected) {
  return [collected](std::string_view text) { collected->append(text); };
}

}  // namespace ridge
