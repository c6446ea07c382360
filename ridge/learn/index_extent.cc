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

// The extent that input number `input` of the node indexes; 0 when it indexes none.
int64_t Picks(const Graph& graph, const Node& node, size_t input) {
  if (input != 1) return 0;
  const TensorType& from = graph.type(node.inputs[0]);
  if (node.op->name == "softmax_cross_entropy") return from.dims.back();
  if (node.op->name != "gather" || from.dims.empty()) return 0;
  const int64_t axis = std::get<int64_t>(node.attrs.at("axis"));
  return from.dims[static_cast<size_t>(axis < 0 ? axis + from.rank() : axis)];
}

}  // namespace

int64_t IndexExtent(const Graph& graph, ValueId input) {
  std::vector<bool> holds(graph.values().size(), false);
  holds[static_cast<size_t>(input)] = true;
  int64_t extent = 0;
  for (const Node& node : graph.nodes()) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (id == kNoValue || !holds[static_cast<size_t>(id)]) continue;
      if (const int64_t picks = Picks(graph, node, i); picks > 0)
        extent = extent == 0 ? picks : std::min(extent, picks);
      if (Moves(node, i)) holds[static_cast<size_t>(node.outputs[0])] = true;
    }
  }
  return extent;
}

}  // namespace ridge
