// Which rows of its inputs an operator needs for some rows of its output.  Inner header of
// push_slices.cc.
#pragma once
#include <optional>
#include <vector>

#include "ridge/graph/passes/slice_ranges.h"

namespace ridge {

// A node whose output 0 is made for some rows only.
struct NarrowCall {
  std::vector<std::optional<Rows>> inputs;  // what it reads of each; nullopt: all
  AttrMap attrs;
};

// nullopt: the node has to run whole, because rows depend on each other or because the pass does
// not know the operator.  Each row that a narrow call makes has the bits that the whole one gives
// it on the reference backend.
std::optional<NarrowCall> NarrowToRows(const Graph& graph, const Node& node, const Rows& rows);

}  // namespace ridge
