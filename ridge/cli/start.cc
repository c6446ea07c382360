#include "ridge/cli/start.h"

#include "ridge/core/process.h"

namespace ridge::cli {

int64_t ResidentAtStart() {
  static const int64_t resident_bytes = ReadProcessMemory().resident_bytes;
  return resident_bytes;
}

}  // namespace ridge::cli
