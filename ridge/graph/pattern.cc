#include "ridge/graph/pattern.h"

namespace ridge {

namespace {
constexpr int64_t kMostScanned = 1024;
}  // namespace

std::optional<double> SplatOf(const Graph& graph, ValueId id) {
  if (const Node* expand = graph.producer(id, "expand")) id = expand->inputs[0];
  const Tensor& tensor = graph.value(id).constant;
  const bool known = graph.value(id).kind == ValueKind::kConstant && tensor.elements() > 0 &&
                     tensor.elements() <= kMostScanned;
  if (!known) return std::nullopt;
  for (int64_t k = 1; k < tensor.elements(); ++k) {
    if (tensor.at(k) != tensor.at(0)) return std::nullopt;
  }
  return tensor.at(0);
}

}  // namespace ridge
