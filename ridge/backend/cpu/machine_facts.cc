#include "ridge/backend/cpu/machine_facts.h"

#include <algorithm>
#include <fstream>
#include <set>

namespace ridge::cpu {
namespace {

// "model name	: AMD EPYC" -> key and value.
bool SplitLine(const std::string& line, std::string& key, std::string& value) {
  const size_t colon = line.find(':');
  if (colon == std::string::npos) return false;
  const size_t key_end = line.find_last_not_of(" \t", colon == 0 ? 0 : colon - 1);
  const size_t value_begin = line.find_first_not_of(" \t", colon + 1);
  key = key_end == std::string::npos ? "" : line.substr(0, key_end + 1);
  value = value_begin == std::string::npos ? "" : line.substr(value_begin);
  return true;
}

std::string FirstWord(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// Sizes as the kernel reports them: "32768K".  (sysconf adds up the caches of a whole socket.)
int64_t ReadSize(const std::string& path) {
  std::ifstream file(path);
  int64_t size = 0;
  char unit = 0;
  if (!(file >> size >> unit) || size <= 0) return 0;
  return size << (unit == 'G' ? 30 : unit == 'M' ? 20 : 10);
}

int64_t* LevelOf(CacheBytes& caches, const std::string& level) {
  if (level == "1") return &caches.l1;
  if (level == "2") return &caches.l2;
  return level == "3" ? &caches.l3 : nullptr;
}

}  // namespace

CpuFacts ReadCpuFacts() {
  CpuFacts facts;
  std::ifstream file("/proc/cpuinfo");
  std::string key, value;
  for (std::string line; std::getline(file, line) && !line.empty();) {  // the first core
    if (!SplitLine(line, key, value)) continue;
    if (key == "vendor_id") facts.vendor = value;
    if (key == "model name") facts.model_name = value;
    if (key == "cpu family") facts.family = std::atoi(value.c_str());
    if (key == "model") facts.model = std::atoi(value.c_str());
  }
  return facts;
}

CacheBytes ReadCaches(const std::vector<int>& cpus, const std::string& root) {
  constexpr int kMostCaches = 8;  // of a core
  CacheBytes caches;
  std::set<std::string> seen;
  for (const int cpu : cpus) {
    for (int index = 0; index < kMostCaches; ++index) {
      const std::string folder =
          root + "/cpu" + std::to_string(cpu) + "/cache/index" + std::to_string(index);
      const std::string level = FirstWord(folder + "/level");
      int64_t* bytes = LevelOf(caches, level);
      if (bytes == nullptr || FirstWord(folder + "/type") == "Instruction") continue;
      const std::string sharers = FirstWord(folder + "/shared_cpu_list");
      if (seen.insert(level + " " + (sharers.empty() ? std::to_string(cpu) : sharers)).second)
        *bytes += ReadSize(folder + "/size");
    }
  }
  const auto cores = static_cast<int64_t>(std::max<size_t>(1, cpus.size()));
  if (caches.l1 == 0) caches.l1 = cores * 32 * 1024;
  if (caches.l2 == 0) caches.l2 = cores * 1024 * 1024;
  if (caches.l3 == 0) caches.l3 = 16 * 1024 * 1024;
  return caches;
}

}  // namespace ridge::cpu
