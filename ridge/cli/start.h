// Facts that only the start of the process knows.
#pragma once
#include <cstdint>

namespace ridge::cli {

// VmRSS at the first call, which RunCommandLine makes first: the memory of the bare program and its
// libraries.
int64_t ResidentAtStart();

}  // namespace ridge::cli
