#include "ridge/learn/index_extent.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace ridge {
namespace {

// Operators that move or copy elements, with the inputs whose elements they pass on.
struct Mover {
  std::string_view op;
  size_t first, last;
};
constexpr std::array<Mover, 8> kMovers = {{{"reshape", 0, 0},
                                           {"transpose", 0, 0},
                                           {"slice", 0, 0},
                                           {"expand", 0, 0},
                                           {"cast", 0, 0},
                                           {"gather", 0, 0},
                                           {"concat", 0, 1000},
                                           {"where", 1, 2}}};

bool Moves(const Node& node, size_t input) {
  return std::any_of(kMovers.begin(), kMovers.end(), [&](const Mover& mover) {
    return node.op->name == mover.op && input >= mover.first && input <= mover.last;
  });
}

// ctc_loss: targets are classes; lengths are at most those of logits and targets.
int64_t CtcExtentOf(const Graph& graph, const Node& node, size_t i) {
  const Dims& logits = graph.type(node.inputs[0]).dims;
  if (i == 1) return logits[2];
  return i == 2 ? logits[1] + 1 : graph.type(node.inputs[1]).dims[1] + 1;
}

// The extent that input `i` of the node indexes; 0 when it indexes none.  Indices and labels have
// no gradient.  They index input 0: its classes, its dimension `axis`, or its first one.
int64_t ExtentOf(const Graph& graph, const Node& node, size_t i) {
  const auto& indices = node.op->no_gradient_inputs;
  const bool index =
      std::find(indices.begin(), indices.end(), static_cast<int>(i)) != indices.end();
  if (!index || i == 0 || node.inputs[0] == kNoValue) return 0;
  const Dims& dims = graph.type(node.inputs[0]).dims;
  if (dims.empty()) return 0;
  if (node.op->name.starts_with("softmax_cross_entropy")) return dims.back();
  if (node.op->name.starts_with("ctc_loss")) return CtcExtentOf(graph, node, i);
  const auto axis = node.attrs.find("axis");
  if (axis == node.attrs.end()) return dims[0];
  const int64_t at = std::get<int64_t>(axis->second);
  return dims[static_cast<size_t>(at < 0 ? at + static_cast<int64_t>(dims.size()) : at)];
}

// The smaller extent; 0 is none.
int64_t Smaller(int64_t a, int64_t b) { return a == 0 || b == 0 ? a + b : std::min(a, b); }

}  // namespace

std::vector<int64_t> IndexExtents(const Graph& graph) {
  std::vector<int64_t> extents(graph.values().size(), 0);
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue) continue;
      int64_t& extent = extents[static_cast<size_t>(node.inputs[i])];
      extent = Smaller(extent, ExtentOf(graph, node, i));
      if (Moves(node, i)) extent = Smaller(extent, extents[static_cast<size_t>(node.outputs[0])]);
    }
  }
  return extents;
}

}  // namespace ridge
