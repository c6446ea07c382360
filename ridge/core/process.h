// What the operating system says of this process: memory, start time.
#pragma once
#include <cstdint>
#include <string>

namespace ridge {

struct ProcessMemory {
  int64_t resident_bytes = 0;       // VmRSS
  int64_t peak_resident_bytes = 0;  // VmHWM: own peak, not a parent's
};
ProcessMemory ReadProcessMemory();  // from /proc/self/status; zeros where there is none

// Begins the peak anew at what is resident now, where the system allows it; free heap is given back
// before.
void ForgetPeakMemory();

// Of the C library's allocator, by all threads; 0 where another one is in its place.
int64_t AllocatedBytes();
// Resident pages of the calling thread's stack, where the system keeps its thread-local data too; 0
// where that is not known.
int64_t ThreadStackBytes();

// Seconds since the process was started (by /proc/self/stat and /proc/uptime).
double SecondsSinceProcessStart();

double MonotonicSeconds();  // steady clock, for durations
double WallSeconds();       // since 1970, for records
double ProcessorSeconds();  // of all threads of this process, on a core
double ThreadSeconds();     // of the calling thread, on a core

// "2026-11-21T09:00:00Z" of WallSeconds(); whole seconds.
std::string UtcText(double wall_s);
// Seconds since 1970 of such a text; 0 where it is no time.
double UtcSeconds(const std::string& text);

}  // namespace ridge
