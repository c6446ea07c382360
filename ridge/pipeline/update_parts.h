// An update graph cut by the stages that its variables belong to.
#pragma once
#include <vector>

#include "ridge/pipeline/stages.h"

namespace ridge {

// Sets numbers, update and shares of every stage.  What depends on variables of several stages is
// computed by every stage that reads it, from values that all get.
Status SplitUpdate(const Graph& update, const StepPlaces& places, const std::vector<int>& borders,
                   std::vector<PipelineStage>& stages);

}  // namespace ridge
