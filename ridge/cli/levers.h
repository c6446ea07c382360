// Levers: what each option that trades memory against time would bring to a plan.
#pragma once
#include <string>

#include "ridge/report/terminal.h"
#include "ridge/train/job/job.h"

namespace ridge::cli {

// A table with a row for the job and one for each option that could change it: peak, step, and
// what a sample takes.  Each row is planned, none rehearsed, so times compare with each other.
// Fails as PlanJob for the job itself; an option that cannot be planned has no row.
Result<std::string> LeversReport(const PlannedJob& job, const Machine& machine,
                                 const Terminal& terminal);

}  // namespace ridge::cli
