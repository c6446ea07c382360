// The ranges that slice and slice_grad select, for the passes.
#pragma once
#include <optional>
#include <vector>

#include "ridge/graph/axes.h"
#include "ridge/graph/graph.h"

namespace ridge {

// The ranges of `dims` that the attributes of slice or slice_grad select: at most one per axis,
// none for an axis selected whole.  nullopt: a step is not 1, an axis is named twice, or the result
// is empty.
std::optional<std::vector<Rows>> SliceRows(const AttrMap& attrs, const Dims& dims);

// The attributes of a slice that selects these ranges.
AttrMap SliceAttrsOf(const std::vector<Rows>& ranges);

}  // namespace ridge
