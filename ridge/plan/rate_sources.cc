#include "ridge/plan/rate_sources.h"

#include <set>

#include "ridge/lower/kernel_rates.h"
#include "ridge/plan/cost/times.h"

namespace ridge {

RateSources RateSourcesOf(const Program& program,
                          const std::map<std::string, std::vector<KernelRate>>& kernel_rates) {
  RateSources sources;
  std::set<std::string> missing;
  double all_s = 0, missing_s = 0;
  for (const StepPlan& step : program.steps) {
    for (size_t n = 0; n < step.nodes.size(); ++n) {
      const PlannedNode& node = step.nodes[n];
      const double seconds = node.modelled_s * static_cast<double>(RunsOf(step, n));
      all_s += seconds;
      const Work work = WorkOf(node);
      if (node.choice.one_thread || RatedWork(work) < 1) continue;
      if (RatedSeconds(kernel_rates, work, node.choice)) {
        ++sources.rated;
        continue;
      }
      missing.insert(node.choice.kernel);
      missing_s += seconds;
    }
  }
  sources.missing.assign(missing.begin(), missing.end());
  if (all_s > 0) sources.missing_share = missing_s / all_s;
  return sources;
}

}  // namespace ridge
