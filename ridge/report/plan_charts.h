// Charts of a plan as SVG: memory over a step, and the roofline with the step's nodes on it.
//
// Each says its numbers without a script.  With one, a cursor tells the node under the mouse, or
// the next one by an arrow key, in words; to a screen reader the chart is a slider of nodes.
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

// What the page needs once for its charts.
extern const char kChartStyle[];
extern const char kChartScript[];

// JSON within a script element that is no program.  Without an id where that is "".
std::string DataElement(const std::string& id, const std::string& json);

}  // namespace ridge
