// FindingsOf: what stands out in a run, as sentences that end in something to do.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/observe/evaluation_record.h"
#include "ridge/observe/metrics.h"
#include "ridge/train/store/layer_norms.h"
#include "ridge/train/store/run_overview.h"

namespace ridge {

struct RunCurves {
  std::vector<MetricsReport> training;     // the reports of steps, by step
  std::vector<MetricsReport> evaluations;  // each has an evaluation_loss
  std::vector<LayerReport> layers = {};    // by step; not of the lines
};
// The lines of metrics.jsonl that are reports.
RunCurves ReadRunCurves(const std::vector<std::string>& lines);

// In this order: a loss that is no number, gradients that vanish, gradients that explode,
// overfitting, guessing, a class that is missed, two
// classes that are confused, waiting for data, a plan that was wrong.  Empty when nothing does.
std::vector<std::string> FindingsOf(const RunOverview& run, const RunCurves& curves,
                                    const std::optional<EvaluationRecord>& evaluation);

}  // namespace ridge
