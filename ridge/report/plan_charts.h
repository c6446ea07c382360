// Charts of a plan: memory over a step, and the roofline with the step's nodes on it.
#pragma once
#include <string>

#include "ridge/plan/plan_json.h"

namespace ridge {

// A figure a step: live bytes by node, a node as wide as its seconds, phases below.
std::string LiveCharts(const Program& program);

struct RooflineLimits {
  double peak_flops_per_s = 0;  // of products in the plan's precision; 0: not known
  double bytes_per_s = 0;       // of memory; 0: not known
};

// "" when no node has both work and traffic.
std::string RooflineChart(const PlanSummary& plan, const RooflineLimits& limits);

}  // namespace ridge
