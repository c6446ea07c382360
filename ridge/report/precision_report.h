// Which nodes of a plan read or write 16 bits, and why the others stay f32.
#pragma once
#include <string>

#include "ridge/lower/rewrite_rules.h"
#include "ridge/plan/plan_json.h"
#include "ridge/report/terminal.h"

namespace ridge {

// `ridge plan --why precision`: nodes and seconds of an update by what they read and write, then
// the operators that stay f32, longest first.  `operands` are the plan's, `rules` those of its
// device.
std::string PrecisionReport(const PlanSummary& plan, DType operands, const RewriteRules& rules,
                            const Terminal& terminal);

}  // namespace ridge
