#include "ridge/backend/cpu/machine_facts.h"

#include <fstream>

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

// Sizes as the kernel tells them: "32768K" of /sys.  (sysconf adds up the caches of a whole
// socket.)
void ReadCacheSize(int index, int64_t& bytes) {
  const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
  std::ifstream file(folder + "/size");
  int64_t size = 0;
  char unit = 0;
  if (!(file >> size >> unit) || size <= 0) return;
  bytes = size << (unit == 'G' ? 30 : unit == 'M' ? 20 : 10);
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
  ReadCacheSize(0, facts.l1_bytes);  // index 1 holds instructions
  ReadCacheSize(2, facts.l2_bytes);
  ReadCacheSize(3, facts.l3_bytes);
  return facts;
}

}  // namespace ridge::cpu
