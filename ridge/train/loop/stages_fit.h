// Whether the stages of a pipeline fit: each rank has other bytes, and all train together or none.
#pragma once
#include "ridge/dist/agreement.h"
#include "ridge/train/job/job.h"

namespace ridge {

// All ranks call it.  Fails at all of them with kOutOfMemory, and the first rank that does not fit.
Status CheckStagesFit(const PlannedJob& job, Agreement& ranks);

}  // namespace ridge
