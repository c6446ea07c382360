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

KernelChoice RowMajorChoice(const OpDef& op, const OpCall& call, const std::string& kernel) {
  KernelChoice choice;
  choice.kernel = kernel;
  choice.input_layouts.assign(call.inputs.size(), kRowMajor);
  choice.output_layouts.assign(call.outputs.size(), kRowMajor);
  for (const auto& [output, input] : op.in_place) {
    const auto out = static_cast<size_t>(output), in = static_cast<size_t>(input);
    if (out < call.outputs.size() && call.has_input(in) && call.inputs[in] == call.outputs[out])
      choice.in_place.emplace_back(output, input);
  }
  return choice;
}

}  // namespace ridge
