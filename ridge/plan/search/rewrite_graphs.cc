#include "ridge/plan/search/rewrite_graphs.h"

namespace ridge {
namespace {

// What was found is compared with `largest` where the graph trains.
Result<Graph> ChunkLossOf(Graph graph, int64_t chunks, std::optional<ChunkableLogits>* largest) {
  RIDGE_ASSIGN_OR_RETURN(ChunkedLoss chunked, ChunkLoss(std::move(graph), chunks));
  const bool counts = largest != nullptr && chunked.logits.has_value();
  if (counts && (!*largest || chunked.logits->bytes > (*largest)->bytes)) *largest = chunked.logits;
  return std::move(chunked.graph);
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
