#include "ridge/core/process.h"

#include <fmt/chrono.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace ridge {

ProcessMemory ReadProcessMemory() {
  ProcessMemory memory;
  std::FILE* file = std::fopen("/proc/self/status", "r");
  if (file == nullptr) return memory;
  char line[256];
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    long kib = 0;
    if (std::sscanf(line, "VmHWM: %ld kB", &kib) == 1) memory.peak_resident_bytes = kib * 1024;
    if (std::sscanf(line, "VmRSS: %ld kB", &kib) == 1) memory.resident_bytes = kib * 1024;
  }
  std::fclose(file);
  return memory;
}

void ForgetPeakMemory() {
  malloc_trim(0);
  std::FILE* file = std::fopen("/proc/self/clear_refs", "w");
  if (file == nullptr) return;
  std::fputs("5", file);
  std::fclose(file);
}

int64_t AllocatedBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

int64_t ThreadStackBytes() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* begin = nullptr;
  size_t bytes = 0;
  const bool found = pthread_attr_getstack(&attributes, &begin, &bytes) == 0;
  pthread_attr_destroy(&attributes);
  if (!found) return 0;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident(bytes / page);
  if (mincore(begin, resident.size() * page, resident.data()) != 0) return 0;
  size_t pages = 0;
  for (const unsigned char state : resident) pages += state & 1U;
  return static_cast<int64_t>(pages * page);
}

double SecondsSinceProcessStart() {
  std::ifstream stat("/proc/self/stat");
  std::string text;
  std::getline(stat, text);
  const size_t paren = text.rfind(')');  // the program's name may hold blanks
  if (paren == std::string::npos) return 0;
  std::istringstream fields(text.substr(paren + 2));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  double start_ticks = 0;
  fields >> start_ticks;  // field 22: since boot
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double uptime = static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  return uptime - start_ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double MonotonicSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

namespace {

double ClockSeconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

double ProcessorSeconds() { return ClockSeconds(CLOCK_PROCESS_CPUTIME_ID); }
double ThreadSeconds() { return ClockSeconds(CLOCK_THREAD_CPUTIME_ID); }

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string UtcText(double wall_s) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(wall_s)));
}

double UtcSeconds(const std::string& text) {
  std::tm time{};
  if (::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &time) == nullptr) return 0;
  return static_cast<double>(::timegm(&time));
}

}  // namespace ridge
