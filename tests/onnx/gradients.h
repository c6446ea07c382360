// Gradients of imported operators against central differences, with the conformance cases as
// models.
//
// A case is turned to f64 throughout; the loss is the sum of its float outputs, each times fixed
// random weights.  Where the differences to the left and to the right disagree the function has a
// kink (relu at 0, a tie of max) and the element is left out.
#pragma once
#include <vector>

#include "tests/onnx/run_case.h"

namespace ridge {

// kPassed: gradients agree.  kUnsupported: an operator without a gradient.  kSkipped: nothing
// float goes in or comes out, or import refuses the model in f64.
CaseResult CheckGradientsOfCase(const OnnxCase& onnx_case);

// Prints operators by what was found; false when a gradient is wrong, or when an operator with
// float inputs and outputs has none and is not listed as one that has no derivative.
// `all`: every case was run, so the list itself must be fresh too.
bool ReportGradients(const std::vector<OnnxCase>& cases, const std::vector<CaseResult>& results,
                     bool all);

}  // namespace ridge
