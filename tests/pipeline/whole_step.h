// A training step with several micro batches, and how its stages compare with it.
#pragma once
#include <string>
#include <vector>

#include "ridge/learn/training_graph.h"
#include "ridge/pipeline/virtual_stages.h"

namespace ridge {

struct WholeStep {
  Graph micro, update;
  UntiedStep untied;
};

struct StepOptions {
  std::string optimizer = "sgd";
  double clip_norm = 0;
  double average_decay = 0;
};
Result<WholeStep> MakeWholeStep(const Graph& forward, int micros, const StepOptions& options = {});

// Outputs of micro batches and updates, and the variables after the last.
struct StepResults {
  std::vector<NamedNumbers> outputs;
  NamedNumbers variables;

  bool operator==(const StepResults&) const = default;  // bits
};

// Updates on one device without stages, and with them.
Result<StepResults> RunWhole(const WholeStep& step, int micros, int updates);
Result<StepResults> RunStages(const WholeStep& step, const std::vector<int>& borders,
                              const PipelineSchedule& schedule, int updates);

// "" or what differs by more than rounding in f64.
std::string CompareResults(const StepResults& got, const StepResults& want);

}  // namespace ridge
