// Runs this program as a child process.
#pragma once
#include <string>
#include <vector>

#include "ridge/core/status.h"

namespace ridge::cli {

// The output of `ridge` with these arguments; its messages go to our stderr.  The child may use all
// cores, even if the calling thread is pinned.
// Fails with kUnavailable when no process can be started, with kFailed when its exit code is not 0.
Result<std::string> OutputOfChild(const std::vector<std::string>& words);

// The exit code in a state of waitpid(2), or 128 plus the number of the signal that ended it.
int ExitCodeIn(int state);

// The exit code of `ridge` with these arguments, 128 plus the number of the signal that ended it;
// its output goes where ours goes.  SIGTERM is passed on to it, SIGINT is left to it. Fails with
// kUnavailable when no process can be started.
Result<int> ExitCodeOfChild(const std::vector<std::string>& words);

}  // namespace ridge::cli
