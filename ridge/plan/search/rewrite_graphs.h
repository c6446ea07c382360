// RewriteGraphs: the graphs of a job as the planner gets them.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/graph/named_graph.h"
#include "ridge/lower/pipeline.h"
#include "ridge/plan/search/recompute.h"

namespace ridge {

struct RewrittenGraphs {
  std::vector<NamedGraph> graphs;
  std::map<std::string, std::vector<PassReport>> passes;  // by name
  int64_t recomputed = 0;                                 // values that are not kept
};

// Runs RewriteStep on each graph, independently of the others; those that may recompute do so
// within `limits`.  Updates are grouped where `group_updates`, unless ranks exchange gradients: one
// that is there early is used early.
Result<RewrittenGraphs> RewriteGraphs(std::vector<NamedGraph> graphs, const PassSelection& passes,
                                      DType operands, const RecomputeLimits& limits,
                                      KernelQuery& kernels, bool group_updates = false);

}  // namespace ridge
