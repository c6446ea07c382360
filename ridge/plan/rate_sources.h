// Which kernels of a plan have rates in the record that their seconds come from.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/core/device_profile.h"
#include "ridge/plan/program.h"

namespace ridge {

struct RateSources {
  int64_t rated = 0;                 // nodes whose kernels have rates for as much work
  std::vector<std::string> missing;  // kernels without, each once, sorted: the profile's curves say
  double missing_share = 0;          // of the seconds of all nodes
};

RateSources RateSourcesOf(const Program& program,
                          const std::map<std::string, std::vector<KernelRate>>& kernel_rates);

}  // namespace ridge
