// RulesOfThumb: what people reckon with instead of a plan, beside what the plan says.
//
// docs/planner.md lists the rules.
#pragma once
#include <string>
#include <vector>

#include "ridge/plan/plan_json.h"
#include "ridge/report/terminal.h"

namespace ridge {

struct RuleOfThumb {
  std::string rule;   // "training takes 16 bytes a parameter and the activations"
  std::string says;   // "389 MiB + 519 MiB"
  std::string plan;   // what the plan has instead
  std::string fails;  // when the rule is wrong
};

// For a training that is planned: what it holds in memory and what bounds its step.
std::vector<RuleOfThumb> RulesOfThumb(const PlanSummary& plan);

// A block for each rule.  Ends in a newline.
std::string RulesReport(const PlanSummary& plan, const Terminal& terminal);

}  // namespace ridge
