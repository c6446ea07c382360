#include "ridge/lower/kernel_query.h"

#include <algorithm>
#include <vector>

namespace ridge {

double KernelQuery::BestEfficiency(const OpDef& op, const OpCall& call) {
  const std::vector<LayoutId> row_major(call.inputs.size(), kRowMajor);
  double best = 0;
  for (const KernelChoice& choice : Candidates(op, call, row_major).choices)
    best = std::max(best, choice.efficiency);
  return best;
}

}  // namespace ridge
