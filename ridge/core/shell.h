// Words for a POSIX shell.
#pragma once
#include <string>

namespace ridge {

// In single quotes, so that the shell takes every character as it is.
std::string ShellQuoted(const std::string& text);

}  // namespace ridge
