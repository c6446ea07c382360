// Elementary functions on vectors of floats, for files compiled once per instruction set.
//
// Highway's Log is exact to a few units in the last place on a range; here the edges (NaN,
// infinities, zero, overflow) are those of <cmath>.  Erf: N. Juffa's single-precision
// minimax polynomials, below 1 ulp.
#if defined(RIDGE_CPU_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGE_CPU_SIMD_MATH_INL_H_
#undef RIDGE_CPU_SIMD_MATH_INL_H_
#else
#define RIDGE_CPU_SIMD_MATH_INL_H_
#endif

#include <cmath>
#include <limits>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE V K(float value) { return hn::Set(D(), value); }

// 2^(m/16) for whole m, |m| < 2048, from z = m + kSixteenthMagic: what is added to a float of that
// size is rounded to a whole number, which then stands in z's low bits.  The lookup needs vectors
// of sixteen lanes.  Against a longer polynomial it moves work from the two multipliers, which bind
// every function here, to units that are idle.
constexpr bool kSixteenLanes = hn::MaxLanes(D()) == 16;
constexpr float kSixteenthMagic = 12582912.0F;  // 1.5 * 2^23
HWY_INLINE V PowerOfSixteenths(V z) {
  // The bits of 2^(k/16), less k << 19: adding z << 19 puts m / 16 into the exponent and k back.
  alignas(64) static constexpr int32_t kBits[16] = {
      0x3F800000, 0x3F7DAAC3, 0x3F7B95C2, 0x3F79C3D3, 0x3F7837F0, 0x3F76F532,
      0x3F75FED7, 0x3F75583F, 0x3F7504F3, 0x3F7508A4, 0x3F75672A, 0x3F76248C,
      0x3F7744FD, 0x3F78CCDF, 0x3F7AC0C7, 0x3F7D257D,
  };
  const D d;
  const hn::RebindToSigned<D> di;
  const auto whole = hn::BitCast(di, z);
  const auto index = hn::IndicesFromVec(di, hn::And(whole, hn::Set(di, 15)));
  const auto power = hn::TableLookupLanes(hn::Load(di, kBits), index);
  return hn::BitCast(d, hn::Add(power, hn::ShiftLeft<19>(whole)));
}
// e^y from z = y * 16 / ln(2) + magic: 2^(m/16) e^r, |r| <= ln(2) / 32, below 1 ulp in sum.
HWY_INLINE V ExpFromSixteenths(V y, V z) {
  const V m = hn::Sub(z, K(kSixteenthMagic));
  const V r = hn::NegMulAdd(m, K(-2.12194440e-4F / 16), hn::NegMulAdd(m, K(0.693359375F / 16), y));
  const V power = PowerOfSixteenths(z);
  V p = hn::MulAdd(K(1.0F / 6), r, K(0.5F));
  p = hn::MulAdd(p, r, K(1.0F));
  return hn::MulAdd(hn::Mul(power, r), p, power);
}
constexpr float kLeastExpArgument = -87.336F;  // e^x below is under 2^-126

// e^x = 2^n e^r with |r| <= ln(2) / 2, Cephes' polynomial, below 1 ulp.  Results under 2^-126
// become 0.  The limits are the first operands: on x86 Min and Max then hand a NaN on.
HWY_INLINE V SafeExp(V x) {
  const auto tiny = hn::Lt(x, K(kLeastExpArgument));
  const auto huge = hn::Gt(x, K(88.722839F));
  const V infinity = K(std::numeric_limits<float>::infinity());
  if constexpr (kSixteenLanes) {
    const V y = hn::Max(K(-88.0F), hn::Min(K(89.0F), x));
    // m = 2048 would be 2^128: the largest results take 2047 and a larger r.
    const V z = hn::Min(K(kSixteenthMagic + 2047),
                        hn::MulAdd(y, K(23.083120654223414F), K(kSixteenthMagic)));
    return hn::IfThenElse(huge, infinity, hn::IfThenZeroElse(tiny, ExpFromSixteenths(y, z)));
  }
  const D d;
  const hn::RebindToSigned<D> di;
  const V limited = hn::Max(K(-88.0F), hn::Min(K(89.0F), x));
  const auto n = hn::NearestInt(hn::Mul(limited, K(1.44269504F)));
  const V whole = hn::ConvertTo(d, n);
  const V r =
      hn::NegMulAdd(whole, K(-2.12194440e-4F), hn::NegMulAdd(whole, K(0.693359375F), limited));
  V p = K(1.9875691500e-4F);
  p = hn::MulAdd(p, r, K(1.3981999507e-3F));
  p = hn::MulAdd(p, r, K(8.3334519073e-3F));
  p = hn::MulAdd(p, r, K(4.1665795894e-2F));
  p = hn::MulAdd(p, r, K(1.6666665459e-1F));
  p = hn::MulAdd(p, r, K(5.0000001201e-1F));
  p = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), K(1.0F));
  // 2^(n-1), from its bits; 2^n itself would overflow for the largest results.
  const auto exponent = hn::Max(hn::Add(n, hn::Set(di, 126)), hn::Zero(di));
  const V half = hn::BitCast(d, hn::ShiftLeft<23>(exponent));
  const V y = hn::Mul(hn::Mul(p, half), K(2.0F));
  return hn::IfThenElse(huge, infinity, y);
}

// e^x for x <= 0 (a rounding error above it is fine), or NaN: SafeExp without what only large
// results need, two thirds of its work.  Results under 2^-126 become 0.
HWY_INLINE V ExpOfNegative(V x) {
  if constexpr (kSixteenLanes) {
    const V limited = hn::Max(K(-88.0F), x);
    const V z = hn::MulAdd(limited, K(23.083120654223414F), K(kSixteenthMagic));
    return hn::IfThenZeroElse(hn::Lt(x, K(kLeastExpArgument)), ExpFromSixteenths(limited, z));
  }
  const D d;
  const hn::RebindToSigned<D> di;
  const V y = hn::Max(K(-88.0F), x);
  const auto n = hn::NearestInt(hn::Mul(y, K(1.44269504F)));
  const V whole = hn::ConvertTo(d, n);
  const V r = hn::NegMulAdd(whole, K(-2.12194440e-4F), hn::NegMulAdd(whole, K(0.693359375F), y));
  V p = K(1.9875691500e-4F);
  p = hn::MulAdd(p, r, K(1.3981999507e-3F));
  p = hn::MulAdd(p, r, K(8.3334519073e-3F));
  p = hn::MulAdd(p, r, K(4.1665795894e-2F));
  p = hn::MulAdd(p, r, K(1.6666665459e-1F));
  p = hn::MulAdd(p, r, K(5.0000001201e-1F));
  p = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), K(1.0F));
  return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127)))));
}

HWY_INLINE V SafeLog(V x) {
  const D d;
  const float infinity = std::numeric_limits<float>::infinity();
  V y = hn::Log(d, x);
  y = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), K(-infinity), y);
  y = hn::IfThenElse(hn::Eq(x, K(infinity)), x, y);
  return hn::IfThenElse(hn::Or(hn::Lt(x, hn::Zero(d)), hn::IsNaN(x)),
                        K(std::numeric_limits<float>::quiet_NaN()), y);
}

// 1 / (1 + e^-x)
HWY_INLINE V Sigmoid(V x) { return hn::Div(K(1.0F), hn::Add(K(1.0F), SafeExp(hn::Neg(x)))); }

// 1 - 2 e / (1 + e) with e = e^(-2 |x|).  Small arguments by the odd series: 1 - e would cancel.
HWY_INLINE V SafeTanh(V x) {
  const V a = hn::Abs(x), s = hn::Mul(x, x);
  const V e = ExpOfNegative(hn::Mul(a, K(-2.0F)));
  const V large = hn::Sub(K(1.0F), hn::Div(hn::Add(e, e), hn::Add(e, K(1.0F))));
  V p = K(-5.70498872745e-3F);  // Cephes tanhf, |x| < 0.625
  p = hn::MulAdd(p, s, K(2.06390887954e-2F));
  p = hn::MulAdd(p, s, K(-5.37397155531e-2F));
  p = hn::MulAdd(p, s, K(1.33314422036e-1F));
  p = hn::MulAdd(p, s, K(-3.33332819422e-1F));
  const V small = hn::MulAdd(hn::Mul(p, s), x, x);
  return hn::IfThenElse(hn::Lt(a, K(0.625F)), small, hn::CopySign(large, x));
}

HWY_INLINE V Erf(V x) {
  const V t = hn::Abs(x), s = hn::Mul(x, x);
  V r = hn::MulAdd(K(-1.72853470e-5F), t, K(3.83197126e-4F));
  const V u = hn::MulAdd(K(-3.88396438e-3F), t, K(2.42546219e-2F));
  r = hn::MulAdd(r, s, u);
  r = hn::MulAdd(r, t, K(-1.06777877e-1F));
  r = hn::MulAdd(r, t, K(-6.34846687e-1F));
  r = hn::MulAdd(r, t, K(-1.28717512e-1F));
  r = hn::MulAdd(r, t, hn::Neg(t));
  const V large = hn::CopySign(hn::Sub(K(1.0F), SafeExp(r)), x);
  V q = K(-5.96761703e-4F);
  q = hn::MulAdd(q, s, K(4.99119423e-3F));
  q = hn::MulAdd(q, s, K(-2.67681349e-2F));
  q = hn::MulAdd(q, s, K(1.12819925e-1F));
  q = hn::MulAdd(q, s, K(-3.76125336e-1F));
  q = hn::MulAdd(q, s, K(1.28379166e-1F));
  const V small = hn::MulAdd(q, x, x);
  const V limited = hn::IfThenElse(hn::Gt(t, K(4.0F)), hn::CopySign(K(1.0F), x), large);
  return hn::IfThenElse(hn::Gt(t, K(0.927734375F)), limited, small);
}

// Cephes atanf: above tan(3 pi / 8) as pi / 2 + atan(-1 / x), above tan(pi / 8) as
// pi / 4 + atan((x - 1) / (x + 1)).
HWY_INLINE V Atan(V x) {
  const V a = hn::Abs(x);
  const auto large = hn::Gt(a, K(2.414213562373095F)), middle = hn::Gt(a, K(0.4142135623730950F));
  const V above = hn::IfThenElse(large, K(-1.0F), hn::Sub(a, K(1.0F)));
  const V below = hn::IfThenElse(large, a, hn::Add(a, K(1.0F)));
  const V r = hn::IfThenElse(middle, hn::Div(above, below), a);
  const V start = hn::IfThenElse(large, K(1.5707963267948966F), K(0.7853981633974483F));
  const V s = hn::Mul(r, r);
  V p = K(8.05374449538e-2F);
  p = hn::MulAdd(p, s, K(-1.38776856032e-1F));
  p = hn::MulAdd(p, s, K(1.99777106478e-1F));
  p = hn::MulAdd(p, s, K(-3.33329491539e-1F));
  const V y = hn::Add(hn::IfThenElseZero(middle, start), hn::MulAdd(hn::Mul(p, s), r, r));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(y, x));
}

// ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|); ln(1 + z) for z in [0, 1] as z * (ln(w) / (w - 1)) with
// w = 1 + z rounded, which is exact where 1 + z loses digits.
HWY_INLINE V Softplus(V x) {
  const D d;
  const V z = SafeExp(hn::Neg(hn::Abs(x)));
  const V w = hn::Add(K(1.0F), z), lost = hn::Sub(w, K(1.0F));
  const V ratio = hn::Div(hn::Mul(hn::Log(d, w), z), lost);
  const V log1p = hn::IfThenElse(hn::Eq(lost, hn::Zero(d)), z, ratio);
  return hn::Add(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x), log1p);
}

}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();
#endif
