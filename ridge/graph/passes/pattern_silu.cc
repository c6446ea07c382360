// x * sigmoid(x) -> silu(x)
#include "ridge/graph/passes/patterns.h"

namespace ridge {

PatternMatch MatchSilu(const Graph& graph, const Node& root) {
  if (root.op->name != "mul") return {};
  for (size_t i = 0; i < 2; ++i) {
    const ValueId x = root.inputs[i], y = root.inputs[1 - i];
    const Node* sigmoid = WriterOf(graph, y, "sigmoid");
    if (sigmoid != nullptr && sigmoid->inputs[0] == x) return {FindOp("silu"), {x}, {}, {y}};
  }
  return {};
}

}  // namespace ridge
