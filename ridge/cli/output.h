// Output of the command line: data to stdout, messages to stderr.
//
// A full disk or a closed pipe at stdout must not look like success: FinishOutput() reports it.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ridge/core/status.h"

namespace ridge::cli {

void PrintData(std::string_view text);  // stdout, unchanged
void PrintTalk(std::string_view text);  // stderr, unchanged

// Whether a file that the user names is standard output, which then takes no other output.
bool IsStandardOutput(const std::optional<std::string>& file);
// Fails with kInvalidArgument when two options, "--json" and "--out", both have standard output.
Status OneOnStandardOutput(const std::vector<std::pair<const char*, bool>>& options);

// "ridge: MESSAGE" and a newline on stderr; control characters in it become '?'.
void PrintError(const Status& status);
void PrintWarning(const std::string& text);

// A function that prints a line to stderr, or nothing when `quiet`.
std::function<void(const std::string&)> SayUnless(bool quiet);

// Flushes stdout.  Fails with kUnavailable when any of it could not be written.
Status FinishOutput();

}  // namespace ridge::cli
