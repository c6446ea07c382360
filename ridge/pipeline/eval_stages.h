// The graph of an evaluation, cut by the stages that its variables belong to.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "ridge/pipeline/stages.h"

namespace ridge {

struct EvalStage {
  Graph graph;                     // reads inputs of the batch, and what it receives, by name
  std::vector<std::string> sends;  // to the next stage
  // Outputs that are made here: name, value.
  std::vector<std::pair<std::string, std::string>> outputs;
};

// A node runs in the first stage where all that it reads can be; what depends on no variable runs
// where it is read, and in the last stage as an output.  Of tied weights it reads the copy of its
// stage.  Fails with kUnsupported when a variable is read in a later stage than its own.
Result<std::vector<EvalStage>> CutEvaluation(const Graph& eval, const UntiedStep& step,
                                             const std::vector<int>& borders);

}  // namespace ridge
