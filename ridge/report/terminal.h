// Terminal: what can be shown where the text goes.  Detected once, passed on; no global state.
//
// Colour, first rule that applies: --color; NO_COLOR (set and not empty) off; CLICOLOR_FORCE or
// FORCE_COLOR (set, not empty, not "0") on; TERM=dumb off; on a terminal on, else off.
// A rank of Open MPI writes to no terminal.
// Unicode when LC_ALL, else LC_CTYPE, else LANG names UTF-8.
#pragma once
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

#include "ridge/core/status.h"

namespace ridge {

enum class ColourChoice { kAuto, kAlways, kNever };
// "auto", "always", "never".  Fails with kInvalidArgument.
Result<ColourChoice> ParseColourChoice(std::string_view text);

struct Terminal {
  bool is_terminal = false;  // a bar may be redrawn; false for TERM=dumb, which cannot
  bool colour = false;
  bool unicode = false;
  int width = 80;  // columns
};

// Gives a variable's value, or nullptr; std::getenv but in tests.
using Environment = std::function<const char*(const char*)>;

Terminal DetectTerminal(std::FILE* stream, ColourChoice choice);
// The rules alone. `columns` is what the system says, 0 if it says nothing.
Terminal DescribeTerminal(bool is_terminal, int columns, ColourChoice choice,
                          const Environment& environment);

// Columns of the terminal behind `stream` now; 0 if it is none.
int TerminalColumns(std::FILE* stream);

enum class Style { kPlain, kBold, kDim, kRed, kGreen, kYellow, kCyan };
// `text` in that style, or as it is without colour.
std::string Styled(std::string_view text, Style style, const Terminal& terminal);

// Where text goes: a stream, or a string in tests.
using TextSink = std::function<void(std::string_view)>;
TextSink SinkTo(std::FILE* stream);       // writes and flushes
TextSink SinkTo(std::string* collected);  // appends

}  // namespace ridge
