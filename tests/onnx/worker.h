// Runs cases in processes of their own: a crash or a hang costs one case.
#pragma once
#include <functional>
#include <vector>

#include "tests/onnx/run_case.h"

namespace ridge {

// `run` on each case, `jobs` at a time; results in the order of the cases.  A case that crashes or
// needs more than `seconds` fails.
std::vector<CaseResult> RunInProcesses(const std::vector<OnnxCase>& cases,
                                       const std::function<CaseResult(const OnnxCase&)>& run,
                                       int jobs, int seconds);

}  // namespace ridge
