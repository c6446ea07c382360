// What is known only at the start of the process.
#pragma once
#include <cstdint>

namespace ridge::cli {

// VmRSS at the first call, which RunCommandLine makes before anything else: what the bare program
// and its libraries hold.
int64_t ResidentAtStart();

}  // namespace ridge::cli
