// What equal bits in every run cost on a GPU of NVIDIA's.
#pragma once
#include <string>

#include "ridge/plan/plan_json.h"
#include "ridge/report/terminal.h"

namespace ridge {

// "the peak is 32.0 MiB larger for it": the largest live values with the first deterministic
// engines against those with cuDNN's first choices.
std::string DeterministicBytesText(const Program& program);

// Whether kernels of cuDNN's run whose other engines nobody has told.
bool OtherEnginesUntold(const Program& program);

// `ridge plan --why determinism`: bytes of the peak, seconds where a source has them, and the
// kernels whose engines differ, largest difference first.
std::string DeterminismReport(const PlanSummary& plan, const Terminal& terminal);

}  // namespace ridge
