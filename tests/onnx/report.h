// The conformance table: what is claimed and what passes, by operator.
#pragma once
#include <string>
#include <vector>

#include "tests/onnx/run_case.h"

namespace ridge {

struct Conformance {
  int passed = 0, failed = 0, unsupported = 0, not_held = 0;
  int held() const { return passed + failed + unsupported; }
  int claimed() const { return passed + failed; }
  double share() const { return held() == 0 ? 1 : static_cast<double>(passed) / held(); }
};

// Of the cases of ai.onnx, or of all others.
Conformance Count(const std::vector<CaseResult>& results, bool standard);

// tests/onnx/conformance.md.
std::string ConformanceTable(const std::vector<OnnxCase>& cases,
                             const std::vector<CaseResult>& results);

}  // namespace ridge
