// RunPage: a run as one page of HTML: result, findings, curves, plan against measured, where the
// time goes, classes, and samples it got wrong.
#pragma once
#include <string>

#include "ridge/core/status.h"

namespace ridge {

// Of a run in any state; what its folder lacks is left out.  Fails with kInvalidData when the
// folder is no run.
Result<std::string> RunPage(const std::string& folder);

}  // namespace ridge
