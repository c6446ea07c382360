// What the machine is: CPU type and cache sizes, as the operating system tells.
#pragma once
#include <cstdint>
#include <string>

namespace ridge::cpu {

struct CpuFacts {
  std::string vendor = "unknown";  // "AuthenticAMD"
  std::string model_name = "CPU";  // "AMD EPYC"
  int family = 0, model = 0;
  int64_t l1_bytes = 32 * 1024;  // of one core
  int64_t l2_bytes = 1024 * 1024;
  int64_t l3_bytes = 16 * 1024 * 1024;  // shared
};

CpuFacts ReadCpuFacts();

// a[i] = b[i] + scale * c[i]
void Triad(const float* b, const float* c, float scale, float* a, int64_t count);

}  // namespace ridge::cpu
