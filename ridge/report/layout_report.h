// Layouts of a training over many devices as a table and as JSON.
#pragma once
#include <string>
#include <vector>

#include "ridge/plan/choose/layout_cost.h"
#include "ridge/report/terminal.h"

namespace ridge {

struct LayoutTable {
  std::string title;
  std::vector<LayoutCost> layouts;
  double peak_flops_per_s = 0;  // of a device; 0: not known
  int64_t limit_bytes = 0;
};

// "p=2,d=4,t=8", "zero1,sequence" ("none")
std::string LayoutMeshText(const LayoutChoice& choice);
std::string LayoutShardText(const LayoutChoice& choice);

// Both in short: "d=4,t=2 zero1", with " again" where it recomputes; axes of one device are left
// out.
std::string LayoutShortText(const LayoutChoice& choice);

// Of the devices' peak; 0: it is not known.
double LayoutMfu(const LayoutCost& cost, double peak_flops_per_s);

std::string LayoutReport(const LayoutTable& table, const Terminal& terminal);

// Of the first one:
// {"mesh", "shard", "recompute", "batch", "accumulate", "devices", "peak_bytes", "limit_bytes",
// "bytes", "step_s", "seconds", "turn_s", "kernels", "samples_s", "flops", "mfu"}, bytes and
// seconds by what they are for.
std::string LayoutJson(const LayoutTable& table);
// Of all, an array of them.
std::string LayoutsJson(const LayoutTable& table);

}  // namespace ridge
