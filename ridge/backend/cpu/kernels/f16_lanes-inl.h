// Vectors of floats and of f16, for files compiled once per instruction set.  All have the bits of
// FloatToF16 and F16ToFloat (core/dtype.h): ties to even, one NaN of each sign.
#if defined(RIDGE_CPU_F16_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGE_CPU_F16_LANES_INL_H_
#undef RIDGE_CPU_F16_LANES_INL_H_
#else
#define RIDGE_CPU_F16_LANES_INL_H_
#endif

#include "ridge/backend/cpu/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {

using F16Bits = hn::Vec<hn::Rebind<uint16_t, D>>;
HWY_INLINE V OneNaN(V x) {
  const V nan = hn::BitCast(D(), hn::Set(hn::RebindToUnsigned<D>(), 0x7FC00000));
  return hn::IfThenElse(hn::IsNaN(x), hn::CopySignToAbs(nan, x), x);
}
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
HWY_INLINE V FromF16(F16Bits bits) {
  return hn::PromoteTo(D(), hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits));
}
HWY_INLINE F16Bits ToF16(V x) {
  return hn::BitCast(hn::Rebind<uint16_t, D>(),
                     hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), OneNaN(x)));
}
HWY_INLINE V RoundToF16(V x) { return FromF16(ToF16(x)); }
#else
HWY_INLINE V RoundToF16(V x) {
  const D d;
  const hn::RebindToUnsigned<D> du;
  const V magnitude = hn::Abs(x);
  const auto bits = hn::BitCast(du, magnitude);
  const auto odd = hn::And(hn::ShiftRight<13>(bits), hn::Set(du, 1));
  const auto up = hn::Add(hn::Add(bits, hn::Set(du, 0xFFF)), odd);
  const V normal = hn::BitCast(d, hn::And(up, hn::Set(du, ~uint32_t{0x1FFF})));
  // The addition rounds to a multiple of 2^-24.
  const V subnormal = hn::Sub(hn::Add(magnitude, hn::Set(d, 0.5F)), hn::Set(d, 0.5F));
  const V finite = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x1p-14F)), subnormal, normal);
  const V infinity = hn::BitCast(d, hn::Set(du, 0x7F800000));
  const V rounded = hn::IfThenElse(hn::Ge(magnitude, hn::Set(d, 65520.0F)), infinity, finite);
  return OneNaN(hn::IfThenElse(hn::IsNaN(x), x, hn::CopySignToAbs(rounded, x)));
}
HWY_INLINE V FromF16(F16Bits bits) {
  const D d;
  const hn::RebindToUnsigned<D> du;
  const auto wide = hn::PromoteTo(du, bits);
  const auto magnitude = hn::And(wide, hn::Set(du, 0x7FFF));
  const auto high = hn::ShiftLeft<13>(magnitude);
  const auto normal = hn::Add(high, hn::Set(du, 112U << 23));
  const auto special = hn::Or(high, hn::Set(du, 0x7F800000));  // infinity, NaN
  const auto subnormal = hn::BitCast(
      du, hn::Sub(hn::BitCast(d, hn::Add(high, hn::Set(du, 113U << 23))), hn::Set(d, 0x1p-14F)));
  const auto small = hn::Lt(magnitude, hn::Set(du, 0x400));
  const auto large = hn::Gt(magnitude, hn::Set(du, 0x7BFF));
  const auto number = hn::IfThenElse(small, subnormal, hn::IfThenElse(large, special, normal));
  const auto sign = hn::ShiftLeft<16>(hn::And(wide, hn::Set(du, 0x8000)));
  return hn::BitCast(d, hn::Or(number, sign));
}
HWY_INLINE F16Bits ToF16(V x) {
  const D d;
  const hn::RebindToUnsigned<D> du;
  const V rounded = RoundToF16(x);
  const V magnitude = hn::Abs(rounded);
  const auto bits = hn::BitCast(du, magnitude);
  const auto normal = hn::ShiftRight<13>(hn::Sub(bits, hn::Set(du, 112U << 23)));
  const auto subnormal =
      hn::Sub(hn::BitCast(du, hn::Add(magnitude, hn::Set(d, 0.5F))), hn::Set(du, 126U << 23));
  const auto special =
      hn::Or(hn::And(hn::ShiftRight<13>(bits), hn::Set(du, 0x3FF)), hn::Set(du, 0x7C00));
  const auto small = hn::RebindMask(du, hn::Lt(magnitude, hn::Set(d, 0x1p-14F)));
  const auto large = hn::Gt(bits, hn::Set(du, 0x7F7FFFFF));
  const auto number = hn::IfThenElse(small, subnormal, hn::IfThenElse(large, special, normal));
  const auto sign = hn::And(hn::ShiftRight<16>(hn::BitCast(du, rounded)), hn::Set(du, 0x8000));
  return hn::DemoteTo(hn::Rebind<uint16_t, D>(),
                      hn::BitCast(hn::RebindToSigned<D>(), hn::Or(number, sign)));
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#endif  // RIDGE_CPU_F16_LANES_INL_H_
