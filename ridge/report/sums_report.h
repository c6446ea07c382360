// `ridge plan --why sums`: sums of gradients by an all-reduce and by a parameter server.
#pragma once
#include <string>
#include <vector>

#include "ridge/plan/choose/parameter_server.h"
#include "ridge/report/terminal.h"

namespace ridge {

struct SumsTable {
  std::string title;          // "resnet50 on dgx-a100-80g, f32"
  std::vector<SumWays> ways;  // by devices
};

// REQUIRES: ways.
std::string SumsReport(const SumsTable& table, const Terminal& terminal);

// {"title", "gradient_bytes", "ways": [{"devices", "all_reduce": {...}, "server": {...}}]} of each;
// without a newline.
std::string SumsJson(const std::vector<SumsTable>& tables);

}  // namespace ridge
