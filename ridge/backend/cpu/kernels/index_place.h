// What an index names: shared by gather, scatter and the kernels that compute places.
#pragma once
#include <cstdint>

#include "ridge/core/dtype.h"

namespace ridge::cpu {

// The place in [0, extent) that index n of an i64 or i32 array names, or -1.
inline int64_t PlaceOf(DType dtype, const void* indices, int64_t n, int64_t extent) {
  const int64_t index = dtype == DType::kI64 ? static_cast<const int64_t*>(indices)[n]
                                             : static_cast<const int32_t*>(indices)[n];
  const int64_t place = index < 0 ? index + extent : index;
  return place >= 0 && place < extent ? place : -1;
}

}  // namespace ridge::cpu
