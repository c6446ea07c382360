#include "ridge/plan/search/rewrite_graphs.h"

namespace ridge {
namespace {

// In chunks, where rows divide so; what was found is compared with `largest` where it trains.
Result<Graph> ChunkLossOf(Graph graph, int64_t chunks, std::optional<ChunkableLogits>* largest) {
  const std::optional<ChunkableLogits> logits = FindChunkableLogits(graph);
  if (!logits) return graph;
  if (largest != nullptr && (!*largest || logits->bytes > (*largest)->bytes)) *largest = logits;
  if (chunks == 1 || logits->rows % chunks != 0) return graph;
  return ChunkLoss(std::move(graph), chunks);
}

}  // namespace

Result<RewrittenGraphs> RewriteGraphs(std::vector<NamedGraph> graphs, const GraphRewrites& rewrites,
                                      KernelQuery& kernels) {
  RewrittenGraphs rewritten;
  const auto recompute = [&](Graph step) -> Result<Graph> {
    const RecomputeSet set = FindRecomputable(step, rewrites.limits, kernels.nominal());
    rewritten.recomputed += set.chosen;
    if (set.empty()) return step;
    return RecomputeValues(step, set);
  };
  for (NamedGraph& named : graphs) {
    const bool trains = named.may_recompute;
    StepRewrites step{.passes = rewrites.passes,
                      .operands = rewrites.operands,
                      .group_updates = rewrites.group_updates && !named.share};
    step.chunk_loss = [&](Graph graph) {
      return ChunkLossOf(std::move(graph), rewrites.loss_chunks,
                         trains ? &rewritten.logits : nullptr);
    };
    if (trains && rewrites.limits.any) step.recompute = recompute;
    RIDGE_ASSIGN_OR_RETURN(named.graph, RewriteStep(std::move(named.graph), step, kernels,
                                                    &rewritten.passes[named.name]));
  }
  rewritten.graphs = std::move(graphs);
  return rewritten;
}

}  // namespace ridge
