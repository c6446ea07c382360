// What the operating system says of this process: memory, start time.
#pragma once
#include <cstdint>

namespace ridge {

struct ProcessMemory {
  int64_t resident_bytes = 0;       // VmRSS
  int64_t peak_resident_bytes = 0;  // VmHWM: own peak, not a parent's
};
ProcessMemory ReadProcessMemory();  // from /proc/self/status; zeros where there is none

// Seconds since the process was started (by /proc/self/stat and /proc/uptime).
double SecondsSinceProcessStart();

double MonotonicSeconds();  // steady clock, for durations
double WallSeconds();       // since 1970, for records
double ProcessorSeconds();  // of all threads of this process, on a core
double ThreadSeconds();     // of the calling thread, on a core

}  // namespace ridge
