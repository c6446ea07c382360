// Walks an array in row-major order beside another one with other strides: what moving,
// broadcasting and reducing have in common.
#pragma once
#include "ridge/core/shape.h"

namespace ridge {

// Calls visit(i, offset) for each element of `dims` in order: i counts them, and
// offset = base + sum over d of index[d] * strides[d].
template <typename Visit>
void ForEachStrided(const Dims& dims, const Dims& strides, int64_t base, Visit visit) {
  const int64_t count = ElementCount(dims);
  Dims index(dims.size(), 0);
  int64_t offset = base;
  for (int64_t i = 0; i < count; ++i) {
    visit(i, offset);
    for (size_t d = dims.size(); d-- > 0;) {  // the next index, as an odometer counts
      offset += strides[d];
      if (++index[d] < dims[d]) break;
      offset -= strides[d] * dims[d];
      index[d] = 0;
    }
  }
}

// Strides that read `from` as if it were broadcast to `to`: 0 where it repeats.
// REQUIRES: it broadcasts.
inline Dims BroadcastStrides(const Dims& from, const Dims& to) {
  const Dims own = RowMajorStrides(from);
  Dims strides(to.size(), 0);
  const size_t offset = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] != 1) strides[offset + d] = own[d];
  }
  return strides;
}

}  // namespace ridge
