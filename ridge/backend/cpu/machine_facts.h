// What the machine is: CPU type and cache sizes, as the operating system tells.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ridge::cpu {

struct CpuFacts {
  std::string vendor = "unknown";  // "AuthenticAMD"
  std::string model_name = "CPU";  // "AMD EPYC"
  int family = 0, model = 0;
};

CpuFacts ReadCpuFacts();

// Bytes of the data caches that some cores have together, each cache counted once however many of
// them share it.
struct CacheBytes {
  int64_t l1 = 0, l2 = 0, l3 = 0;
};

// `cpus`: numbers of logical cores.  `root` has a folder for each ("cpu0/cache/index0/size").  What
// it does not tell is taken to be 32 KiB and 1 MiB a core, and 16 MiB for all.
CacheBytes ReadCaches(const std::vector<int>& cpus,
                      const std::string& root = "/sys/devices/system/cpu");

// a[i] = b[i] + scale * c[i]
void Triad(const float* b, const float* c, float scale, float* a, int64_t count);

}  // namespace ridge::cpu
