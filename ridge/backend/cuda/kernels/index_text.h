// Texts of index arithmetic whose extents and strides are numbers.
#pragma once
#include <string>
#include <string_view>

#include "ridge/core/shape.h"

namespace ridge::cuda {

// Where element `element`, a variable that counts over `dims` in row-major order, lies in an array
// of these strides (elements; 0 where it is repeated, negative where it runs backward):
// "e / 12 % 7 * 3 + e % 12".  Dimensions that need no division of their own are merged.
std::string OffsetText(const Dims& dims, const Dims& strides, const std::string& element);

// Strides of a row-major array of `from` over the dimensions of `to`, to which it is broadcast.
Dims BroadcastStrides(const Dims& from, const Dims& to);

// PlaceOfIndex(index, extent): the place in [0, extent) that an index in [-extent, extent) names,
// or -1.
inline constexpr std::string_view kPlaceOfIndexText = R"cuda(
RIDGE_FUNCTION i64 PlaceOfIndex(i64 index, i64 extent) {
  const i64 place = index < 0 ? index + extent : index;
  return place >= 0 && place < extent ? place : -1;
}
)cuda";

// "int" where it counts to `elements`, else "i64".
const char* IndexType(int64_t elements);

// While it lives, "i64" begins at so many elements, in this thread: tests compile such texts for
// small tensors.
class WideIndicesFrom {
 public:
  explicit WideIndicesFrom(int64_t elements);
  ~WideIndicesFrom();
  WideIndicesFrom(const WideIndicesFrom&) = delete;
  WideIndicesFrom& operator=(const WideIndicesFrom&) = delete;

 private:
  const int64_t before_;
};

}  // namespace ridge::cuda
