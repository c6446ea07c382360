// AxisView: a row-major array seen as [outer, extent, inner] around one axis.
#pragma once
#include "ridge/core/shape.h"

namespace ridge {

struct AxisView {
  int64_t outer = 1;   // product of the extents before the axis
  int64_t extent = 1;  // along the axis; the stride between neighbours is `inner`
  int64_t inner = 1;   // product of the extents after the axis

  int64_t Index(int64_t o, int64_t k, int64_t i) const { return (o * extent + k) * inner + i; }
};

// REQUIRES: 0 <= axis < dims.size().
inline AxisView ViewAxis(const Dims& dims, int axis) {
  AxisView view;
  for (int d = 0; d < axis; ++d) view.outer *= dims[static_cast<size_t>(d)];
  view.extent = dims[static_cast<size_t>(axis)];
  for (size_t d = static_cast<size_t>(axis) + 1; d < dims.size(); ++d) view.inner *= dims[d];
  return view;
}

// The axes from `axis` to the last as one: [outer, extent, 1].
inline AxisView ViewTrailing(const Dims& dims, int axis) {
  AxisView view = ViewAxis(dims, axis);
  view.extent *= view.inner;
  view.inner = 1;
  return view;
}

}  // namespace ridge
