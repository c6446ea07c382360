// What columns and channels cost that are no multiples of what 16-bit kernels of a GPU read.
#pragma once
#include <string>

#include "ridge/lower/rewrite_rules.h"
#include "ridge/plan/plan_json.h"
#include "ridge/report/terminal.h"

namespace ridge {

// `ridge plan --why padding`: the classes that are padded in each step and the seconds of it, the
// images whose channels are, and the sizes that would spare both.  `rules` are those of the plan's
// device.
std::string PaddingReport(const PlanSummary& plan, const RewriteRules& rules,
                          const Terminal& terminal);

}  // namespace ridge
