// RewriteGraphs: the graphs of a job as the planner gets them.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ridge/graph/named_graph.h"
#include "ridge/lower/chunk_loss.h"
#include "ridge/lower/pipeline.h"
#include "ridge/plan/search/recompute.h"

namespace ridge {

struct GraphRewrites {
  PassSelection passes;
  DType operands = DType::kF32;  // of products
  RecomputeLimits limits = {};
  int64_t loss_chunks = 1;  // of the logits of each graph, as ChunkLoss() has it
  bool group_updates =
      false;  // but where ranks exchange gradients: one that is there early is used
};

struct RewrittenGraphs {
  std::vector<NamedGraph> graphs;
  std::map<std::string, std::vector<PassReport>> passes;  // by name
  int64_t recomputed = 0;                                 // values that are not kept
  std::optional<ChunkableLogits> logits = std::nullopt;   // the largest of those that train
};

// Runs RewriteStep on each graph, independently of the others; those that may recompute do so
// within the limits.
Result<RewrittenGraphs> RewriteGraphs(std::vector<NamedGraph> graphs, const GraphRewrites& rewrites,
                                      KernelQuery& kernels);

}  // namespace ridge
