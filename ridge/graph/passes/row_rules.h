// NarrowToRows: the input rows that an operator needs for some rows of its output.  Inner header of
// push_slices.cc.
#pragma once
#include <optional>
#include <vector>

#include "ridge/graph/passes/slice_ranges.h"

namespace ridge {

// A call that computes some rows of a node's output 0.
struct NarrowCall {
  std::vector<std::optional<Rows>> inputs;  // the rows that it reads of each; nullopt: all
  AttrMap attrs;
};

// nullopt: the node must compute all rows, because rows depend on each other or the operator has no
// rule.  On the reference backend the rows have the same bits as those of the whole call.
std::optional<NarrowCall> NarrowToRows(const Graph& graph, const Node& node, const Rows& rows);

}  // namespace ridge
