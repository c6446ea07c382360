#include "ridge/core/threads.h"

#include <fmt/format.h>
#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

namespace ridge {
namespace {

std::optional<std::string> FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

// The folder of this process in a cgroup hierarchy, from lines "ID:CONTROLLERS:PATH".
std::string CgroupPath(const std::string& controller, const std::string& system = "") {
  std::ifstream file(system + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controllers == controller ||
        (!controller.empty() && controllers.find(controller) != std::string::npos)) {
      return line.substr(second + 1);
    }
  }
  return "/";
}

// A limit holds for all below it, so every folder from ours up to the root counts.
template <typename Read>
void ForEachCgroup(const std::string& root, std::string path, Read read) {
  while (true) {
    read(root + (path == "/" ? "" : path));
    if (path.empty() || path == "/") return;
    path.resize(path.rfind('/'));
    if (path.empty()) path = "/";
  }
}

int QuotaCores() {
  double cores = 1e9;
  ForEachCgroup("/sys/fs/cgroup", CgroupPath(""), [&](const std::string& folder) {
    const auto line = FirstLine(folder + "/cpu.max");  // "max 100000" or "150000 100000"
    double quota = 0, period = 0;
    if (line && std::istringstream(*line) >> quota >> period && quota > 0 && period > 0)
      cores = std::min(cores, quota / period);
  });
  ForEachCgroup("/sys/fs/cgroup/cpu", CgroupPath("cpu"), [&](const std::string& folder) {
    const auto quota = FirstLine(folder + "/cpu.cfs_quota_us");
    const auto period = FirstLine(folder + "/cpu.cfs_period_us");
    if (quota && period && std::atof(quota->c_str()) > 0 && std::atof(period->c_str()) > 0)
      cores = std::min(cores, std::atof(quota->c_str()) / std::atof(period->c_str()));
  });
  return static_cast<int>(std::min(cores + 0.999, 1e6));
}

struct CgroupFiles {
  const char *limit, *usage;
  const char *inactive, *active;  // pages of files, in memory.stat
};

// Of the program's own file, what a step of training reads again and again; the kernel can drop the
// rest.
constexpr int64_t kProgramInUse = int64_t{8} << 20;

// Of a memory.stat file; 0 when it does not say.
int64_t StatBytes(const std::string& path, const std::string& wanted) {
  std::ifstream file(path);
  int64_t bytes = 0;
  for (std::string key; file >> key >> bytes;) {
    if (key == wanted) return bytes;
  }
  return 0;
}

// Of a file with lines "KEY: NUMBER kB" among others.
std::optional<int64_t> KibBytes(const std::string& path, const std::string& wanted) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, wanted.size(), wanted) == 0)
      return std::atoll(line.c_str() + wanted.size()) * 1024;
  }
  return std::nullopt;
}

// Pages of this process that the plan counts too, and those that the kernel can drop.
int64_t OwnBytes(const std::string& system) {
  const std::string status = system + "/proc/self/status";
  const int64_t program = KibBytes(status, "RssFile:").value_or(0);
  return KibBytes(status, "RssAnon:").value_or(0) + std::max<int64_t>(program - kProgramInUse, 0);
}

const cpu_set_t& InitialCpus() {
  static const cpu_set_t cpus = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0) return set;
    const unsigned count = std::max(1U, std::thread::hardware_concurrency());
    for (unsigned cpu = 0; cpu < count; ++cpu) CPU_SET(cpu, &set);
    return set;
  }();
  return cpus;
}

}  // namespace

// With OMP_PROC_BIND set the OpenMP runtime has bound us to one core before main; it still knows
// how many there were.
int AllowedCores() { return std::max(CPU_COUNT(&InitialCpus()), omp_get_num_procs()); }

std::vector<int> AllowedCpus(int count) {
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE && static_cast<int>(cpus.size()) < count; ++cpu) {
    if (CPU_ISSET(cpu, &InitialCpus())) cpus.push_back(cpu);
  }
  return cpus;
}

void PinThread(int index) {
  cpu_set_t one;
  CPU_ZERO(&one);
  const std::vector<int> cpus = AllowedCpus(index + 1);
  if (index < static_cast<int>(cpus.size())) CPU_SET(cpus.back(), &one);
  (void)sched_setaffinity(0, sizeof(one), &one);
}

void UnpinThread() { (void)sched_setaffinity(0, sizeof(cpu_set_t), &InitialCpus()); }

int AvailableThreads() {
  int threads = AllowedCores();
  threads = std::min(threads, std::max(1, QuotaCores()));
  if (const char* text = std::getenv("OMP_NUM_THREADS"); text != nullptr && std::atoi(text) > 0)
    threads = std::min(threads, std::atoi(text));
  return std::min(threads, omp_get_thread_limit());
}

Status CheckThreadLimit(const std::string& what, int64_t threads) {
  const int limit = omp_get_thread_limit();
  if (threads <= limit) return Status();
  return InvalidArgument(
      fmt::format("{} is {}; OMP_THREAD_LIMIT allows {}. hint: a larger OMP_THREAD_LIMIT", what,
                  threads, limit));
}

double BusySeconds() {
  std::ifstream stat("/proc/stat");
  double ticks = 0;
  for (std::string line; std::getline(stat, line);) {
    std::istringstream fields(line);
    std::string name;
    fields >> name;
    if (name.size() < 4 || name.compare(0, 3, "cpu") != 0) continue;  // "cpu" is all of them
    const int cpu = std::atoi(name.c_str() + 3);
    if (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &InitialCpus())) continue;
    double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, softirq = 0, stolen = 0;
    fields >> user >> nice >> system >> idle >> waiting >> irq >> softirq >> stolen;
    ticks += user + nice + system + irq + softirq + stolen;
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

int64_t AvailableMemoryBytes(const std::string& system) {
  int64_t available =
      KibBytes(system + "/proc/meminfo", "MemAvailable:").value_or(int64_t{1} << 50);
  const auto limit_by = [&](const std::string& folder, const CgroupFiles& files) {
    const auto limit = FirstLine(folder + files.limit), usage = FirstLine(folder + files.usage);
    if (!limit || *limit == "max" || std::atoll(limit->c_str()) <= 0) return;
    const int64_t used = usage ? std::atoll(usage->c_str()) : 0;
    const std::string stat = folder + "/memory.stat";
    const int64_t cached = StatBytes(stat, files.inactive) + StatBytes(stat, files.active);
    available = std::min<int64_t>(available,
                                  std::atoll(limit->c_str()) - std::max<int64_t>(used - cached, 0));
  };
  ForEachCgroup(system + "/sys/fs/cgroup", CgroupPath("", system), [&](const auto& folder) {
    limit_by(folder, {"/memory.max", "/memory.current", "inactive_file", "active_file"});
  });
  ForEachCgroup(system + "/sys/fs/cgroup/memory", CgroupPath("memory", system),
                [&](const auto& folder) {
                  limit_by(folder, {"/memory.limit_in_bytes", "/memory.usage_in_bytes",
                                    "total_inactive_file", "total_active_file"});
                });
  return std::max<int64_t>(available, 0) + OwnBytes(system);
}

}  // namespace ridge
