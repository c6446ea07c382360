// ScalingReport: `ridge plan --why devices`, and its JSON.
#pragma once
#include <string>

#include "ridge/plan/choose/scaling.h"
#include "ridge/report/terminal.h"

namespace ridge {

// Two tables, of strong and weak scaling, a row a count with each term of its step, and what two
// devices bring.
std::string ScalingReport(const ScalingTable& table, const Terminal& terminal);

// One object with "title", "strong" and "weak"; without a newline.
std::string ScalingJson(const ScalingTable& table);

}  // namespace ridge
