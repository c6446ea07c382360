// What gather and its gradient, scatter_add, share.
#pragma once
#include "ridge/graph/ops/shared/axis_view.h"

namespace ridge {

// dims with the extent of `axis` replaced by `indices`.
inline Dims GatherDims(const Dims& dims, int axis, const Dims& indices) {
  Dims out(dims.begin(), dims.begin() + axis);
  out.insert(out.end(), indices.begin(), indices.end());
  out.insert(out.end(), dims.begin() + axis + 1, dims.end());
  return out;
}

// Calls visit(whole, part) for every element `part` of the gathered array, in order, where `whole`
// is its place in the array of `dims`, or -1 when its index is outside [-extent, extent).
template <typename Visit>
void ForEachGathered(const Dims& dims, int axis, int64_t index_count, const double* indices,
                     Visit visit) {
  const AxisView view = ViewAxis(dims, axis);
  int64_t part = 0;
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t n = 0; n < index_count; ++n) {
      // Compared as doubles: 2^63 fits no int64_t.
      const auto extent = static_cast<double>(view.extent);
      const double index = indices[n] < 0 ? indices[n] + extent : indices[n];
      const bool inside = index >= 0 && index < extent;
      const int64_t k = inside ? static_cast<int64_t>(index) : 0;
      for (int64_t i = 0; i < view.inner; ++i) visit(inside ? view.Index(o, k, i) : -1, part++);
    }
  }
}

}  // namespace ridge
