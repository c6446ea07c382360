// The rounding of FloatToBF16() by vectors; included once for each instruction set.
#if defined(RIDGE_CORE_BF16_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGE_CORE_BF16_LANES_INL_H_
#undef RIDGE_CORE_BF16_LANES_INL_H_
#else
#define RIDGE_CORE_BF16_LANES_INL_H_
#endif
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ridge {
namespace HWY_NAMESPACE {

// The bits of FloatToBF16() in the lower half of each lane.
template <class V>
HWY_INLINE auto BF16Bits(V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToUnsigned<hn::DFromV<V>> d;
  const auto bits = hn::BitCast(d, x), high = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(high, hn::Set(d, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7FFF))));
  return hn::IfThenElse(hn::RebindMask(d, hn::IsNaN(x)), hn::Or(high, hn::Set(d, 0x40)), rounded);
}

}  // namespace HWY_NAMESPACE
}  // namespace ridge
HWY_AFTER_NAMESPACE();

#endif
