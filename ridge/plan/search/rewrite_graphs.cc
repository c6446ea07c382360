#include "ridge/plan/search/rewrite_graphs.h"

namespace ridge {

Result<RewrittenGraphs> RewriteGraphs(std::vector<NamedGraph> graphs, const PassSelection& passes,
                                      DType operands, const RecomputeLimits& limits,
                                      KernelQuery& kernels, bool group_updates) {
  RewrittenGraphs rewritten;
  const auto recompute = [&](Graph step) -> Result<Graph> {
    const RecomputeSet set = FindRecomputable(step, limits, kernels.nominal());
    rewritten.recomputed += set.chosen;
    if (set.empty()) return step;
    return RecomputeValues(step, set);
  };
  for (NamedGraph& named : graphs) {
    StepRewrites rewrites{passes, operands, {}, group_updates && !named.share};
    if (named.may_recompute && limits.any) rewrites.recompute = recompute;
    RIDGE_ASSIGN_OR_RETURN(named.graph, RewriteStep(std::move(named.graph), rewrites, kernels,
                                                    &rewritten.passes[named.name]));
  }
  rewritten.graphs = std::move(graphs);
  return rewritten;
}

}  // namespace ridge
