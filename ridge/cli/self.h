// This very program as a child process.
#pragma once
#include <string>
#include <vector>

#include "ridge/core/status.h"

namespace ridge::cli {

// What `ridge` prints when it runs with these words; its messages go where ours go.  It has all
// cores again, whatever the calling thread is pinned to.
// Fails with kUnavailable when no process can be started, with kFailed when its exit code is not 0.
Result<std::string> OutputOfSelf(const std::vector<std::string>& words);

}  // namespace ridge::cli
