// Text in columns: its width on a terminal, and making it fit.
//
// Width is counted in code points: right for all letters and digits but East Asian wide ones and
// combining marks, which put a row out of line and harm nothing else.
#pragma once
#include <string>
#include <string_view>

namespace ridge {

int DisplayWidth(std::string_view text);

// Names come from files: what a terminal would obey (control characters) becomes '?'.
std::string Printable(std::string_view text);
// The same, but for the ends of lines.
std::string PrintableLines(std::string_view text);

// `text`, or its start and an ellipsis, in at most `width` columns.
std::string Shortened(std::string_view text, int width, bool unicode);

std::string PadRight(std::string_view text, int width);  // blanks behind it
std::string PadLeft(std::string_view text, int width);   // blanks before it

}  // namespace ridge
