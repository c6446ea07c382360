// What the rewrites may make for the kernels of this program.
#pragma once
#include "ridge/lower/rewrite_rules.h"

namespace ridge {

// By KernelDef::fuses.  The reference backend answers the same: it is the oracle of the CPU's
// kernels, so both run the same nodes.
const RewriteRules& HostRules();

}  // namespace ridge
