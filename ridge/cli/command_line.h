// The command line: words in, exit code out.
#pragma once

namespace ridge::cli {

// Parses, runs the verb, and prints an error once on stderr.  Never throws.
int RunCommandLine(int argc, const char* const* argv);

}  // namespace ridge::cli
