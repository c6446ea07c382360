// ScalingReport: `ridge plan --why devices`, and its JSON.
#pragma once
#include <string>
#include <vector>

#include "ridge/plan/choose/scaling.h"
#include "ridge/report/terminal.h"

namespace ridge {

// Of strong and of weak scaling: whether more devices help, a chart of samples a second, and a row
// a count with each term of its step.  Of several tables, each a place, also a comparison.
std::string ScalingReport(const std::vector<ScalingTable>& tables, const Terminal& terminal);

// One object with "title", "strong" and "weak", or an array of several; without a newline.
std::string ScalingJson(const std::vector<ScalingTable>& tables);

// What the second count, and the last one, bring over the first one that fits; "" for one count.
// `points`: by count.
std::string ScalingVerdict(const std::vector<ScalingPoint>& points);

}  // namespace ridge
