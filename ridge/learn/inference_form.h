// The inference form of a graph: batch_norm uses its running statistics, dropout does nothing.
#pragma once
#include "ridge/graph/graph.h"

namespace ridge {

// The running statistics of a batch_norm node are the states whose updates are computed from its
// mean and var outputs, as in
//   y, mean, var = batch_norm(x, scale, shift)
//   update running_mean = ...mean...
// This relation is in the graph itself, so it holds for built-in models and for graphs in text
// form.
struct RunningStatistics {
  NodeId node = -1;
  ValueId mean = kNoValue;
  ValueId var = kNoValue;
};
// In the order of the nodes.  Several nodes may share one state (a module called twice).  Fails
// with kInvalidModel when an update reads both a mean and a var.
Result<std::vector<RunningStatistics>> FindRunningStatistics(const Graph& graph);

// The same outputs without updates, reduced to the nodes that the outputs need.  Fails with
// kInvalidModel when a batch_norm has no running statistics; the message shows how to write them.
Result<Graph> InferenceForm(const Graph& forward);

// The training form, but batch_norm uses its running statistics, which then stay: `--batch-norm
// frozen`.  Fails as InferenceForm does.
Result<Graph> WithFrozenBatchNorm(const Graph& forward);

}  // namespace ridge
