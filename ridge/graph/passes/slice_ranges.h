// What slice and slice_grad take of their axes, as the passes see it.
#pragma once
#include <optional>
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

// Elements [first, first + count) of one axis.
struct Rows {
  int64_t axis = 0, first = 0, count = 0;

  int64_t end() const { return first + count; }
  bool operator==(const Rows&) const = default;
};

// The ranges that attributes of slice or slice_grad take of `dims`, at most one an axis, without
// the axes that are taken whole.  nullopt: a step is not 1, an axis is named twice, or nothing is
// left.
std::optional<std::vector<Rows>> SliceRows(const AttrMap& attrs, const Dims& dims);

// The attributes of slice for these ranges.
AttrMap SliceAttrsOf(const std::vector<Rows>& ranges);

}  // namespace ridge
