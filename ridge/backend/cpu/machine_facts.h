// Machine facts: CPU type and cache sizes, as the operating system reports them.
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

// Total bytes of the data caches of some cores; a shared cache counts once.
struct CacheBytes {
  int64_t l1 = 0, l2 = 0, l3 = 0;
};

// `cpus`: numbers of logical cores.  `root` has a folder for each ("cpu0/cache/index0/size").
// Defaults for missing entries: L1 32 KiB and L2 1 MiB per core, L3 16 MiB for all.
CacheBytes ReadCaches(const std::vector<int>& cpus,
                      const std::string& root = "/sys/devices/system/cpu");

// a[i] = b[i] + scale * c[i]
void Triad(const float* b, const float* c, float scale, float* a, int64_t count);

}  // namespace ridge::cpu
