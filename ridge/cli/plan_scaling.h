// `ridge plan MODEL --why devices` and `--why sums`: whether more devices would help, and what
// their sums of gradients take.
#pragma once
#include "ridge/cli/plan_verb.h"
#include "ridge/report/terminal.h"

namespace ridge::cli {

// Plans and prints, of each place of --on: a cluster, a device of the catalog, whose best layouts
// are searched, or a machine, whose ranks share the batch.  Fails with kInvalidArgument for counts
// that are none, and as SearchLayouts and PlanOn do.
Status PrintScaling(const PlanVerb& verb, const Terminal& terminal);

// Plans and prints, of each place of --on, an all-reduce beside a parameter server.  Fails with
// kInvalidArgument where a link is not known, and as PlanOn.
Status PrintSums(const PlanVerb& verb, const Terminal& terminal);

// "1,2,4" of --devices, or 1, 2, 4, ... up to N.  `usual`: N where it is not given.  Fails with
// kInvalidArgument unless they ascend from 1 or more.
Result<std::vector<int64_t>> CountsOf(const PlanVerb& verb, int64_t usual);

}  // namespace ridge::cli
