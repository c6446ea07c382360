// Why a group of nodes is far from its limit, and what would help a step most.
#pragma once
#include "ridge/report/profile.h"

namespace ridge {

// A group below this share of its limit is far from it; above, what is left is not worth a word.
inline constexpr double kFarFromLimit = 0.7;
// What a good kernel reaches: gains are counted down to limit / this.
inline constexpr double kReachable = 0.9;

// Fills cause and why of every group that is far from its limit.
void ExplainGroups(StepProfile& profile);

// Fills advice.  REQUIRES: ExplainGroups has run.
void FindAdvice(StepProfile& profile);

}  // namespace ridge
