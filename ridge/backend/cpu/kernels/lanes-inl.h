// Vectors of floats whose numbers in memory are few or bf16, for files compiled once per
// instruction set.
#if defined(RIDGE_CPU_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGE_CPU_LANES_INL_H_
#undef RIDGE_CPU_LANES_INL_H_
#else
#define RIDGE_CPU_LANES_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// `count` < 16 bytes in pieces of known size: a call would spill every register of a caller.
HWY_INLINE void CopyFew(const uint8_t* from, size_t count, uint8_t* to) {
  size_t done = 0;
  if ((count & 8) != 0) std::memcpy(to, from, 8), done = 8;
  if ((count & 4) != 0) std::memcpy(to + done, from + done, 4), done += 4;
  if ((count & 2) != 0) std::memcpy(to + done, from + done, 2), done += 2;
  if ((count & 1) != 0) to[done] = from[done];
}

// The first `count` lanes; the others are 0.  Reads nothing behind them.
HWY_INLINE V LoadFirst(const float* x, size_t count) {
  const D d;
#if HWY_TARGET == HWY_SSE2 || HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_SSE4
  alignas(64) float lanes[hn::MaxLanes(D())] = {};
  std::memcpy(lanes, x, count * sizeof(float));
  return hn::Load(d, lanes);
#else
  return hn::MaskedLoad(hn::FirstN(d, count), d, x);
#endif
}
HWY_INLINE void StoreFirst(V v, float* x, size_t count) {
  const D d;
#if HWY_TARGET == HWY_SSE2 || HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_SSE4
  alignas(64) float lanes[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
  std::memcpy(x, lanes, count * sizeof(float));
#else
  hn::BlendedStore(v, hn::FirstN(d, count), d, x);
#endif
}

// bf16 is the upper half of an f32.
HWY_INLINE V LoadFloats(const float* x) { return hn::LoadU(D(), x); }
HWY_INLINE V LoadFloats(const uint16_t* x) {
  const auto upper =
      hn::PromoteTo(hn::Rebind<uint32_t, D>(), hn::LoadU(hn::Rebind<uint16_t, D>(), x));
  return hn::BitCast(D(), hn::ShiftLeft<16>(upper));
}

// The upper half of each lane is the number as bf16: ties to even, NaN stays NaN.
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> RoundUpperHalf(V x) {
  const hn::RebindToSigned<D> d;
  const auto bits = hn::BitCast(d, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(d, 0x7FFF)), odd);
  const auto quiet = hn::Or(bits, hn::Set(d, 0x400000));
  return hn::IfThenElse(hn::RebindMask(d, hn::IsNaN(x)), quiet, rounded);
}
HWY_INLINE void StoreFloats(V x, float* to) { hn::StoreU(x, D(), to); }
HWY_INLINE void StoreFloats(V x, uint16_t* to) {
  const hn::Rebind<uint16_t, D> d;
  const auto upper =
      hn::DemoteTo(hn::RebindToSigned<decltype(d)>(), hn::ShiftRight<16>(RoundUpperHalf(x)));
  hn::StoreU(hn::BitCast(d, upper), d, to);
}

// `count` lanes, of which there are often all.
HWY_INLINE V LoadSome(const float* x, size_t count) {
  return count == hn::Lanes(D()) ? LoadFloats(x) : LoadFirst(x, count);
}
HWY_INLINE V LoadSome(const uint16_t* x, size_t count) {
  if (count == hn::Lanes(D())) return LoadFloats(x);
  alignas(32) uint16_t lanes[hn::MaxLanes(D())] = {};
  std::memcpy(lanes, x, count * sizeof(uint16_t));
  return LoadFloats(lanes);
}
HWY_INLINE void StoreSome(V v, float* x, size_t count) {
  count == hn::Lanes(D()) ? StoreFloats(v, x) : StoreFirst(v, x, count);
}
HWY_INLINE void StoreSome(V v, uint16_t* x, size_t count) {
  if (count == hn::Lanes(D())) return StoreFloats(v, x);
  alignas(32) uint16_t lanes[hn::MaxLanes(D())];
  StoreFloats(v, lanes);
  std::memcpy(x, lanes, count * sizeof(uint16_t));
}

}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#endif  // RIDGE_CPU_LANES_INL_H_
