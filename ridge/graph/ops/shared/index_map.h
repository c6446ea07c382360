// Places named by indices: what element_index, ravel_index and scatter share.
#pragma once
#include "ridge/graph/ops/shared/axis_view.h"

namespace ridge {

// The place in [0, extent) that an index in [-extent, extent) names, or -1.
// Indices are compared as doubles: 2^63 fits no int64_t.
inline int64_t PlaceOfIndex(double index, int64_t extent) {
  const auto end = static_cast<double>(extent);
  const double place = index < 0 ? index + end : index;
  return place >= 0 && place < end ? static_cast<int64_t>(place) : -1;
}

}  // namespace ridge
