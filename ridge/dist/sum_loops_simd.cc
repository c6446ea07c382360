#include "ridge/core/dtype.h"
#include "ridge/core/simd_targets.h"
#include "ridge/dist/sum_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/dist/sum_loops_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ridge {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using DU = hn::RebindToUnsigned<D>;
using DI = hn::RebindToSigned<D>;
using D16 = hn::Rebind<uint16_t, D>;
using V = hn::Vec<D>;
using VU = hn::Vec<DU>;

// The bits of FloatToBF16() in the lower half of each lane.
HWY_INLINE VU BF16Bits(V x) {
  const DU d;
  const VU bits = hn::BitCast(d, x), high = hn::ShiftRight<16>(bits);
  const VU odd = hn::And(high, hn::Set(d, 1));
  const VU rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7FFF))));
  return hn::IfThenElse(hn::RebindMask(d, hn::IsNaN(x)), hn::Or(high, hn::Set(d, 0x40)), rounded);
}

HWY_INLINE V Rounded(V x) { return hn::BitCast(D(), hn::ShiftLeft<16>(BF16Bits(x))); }

// Loops over whole vectors: how many numbers they did.
int64_t AddWhole(const float* a, const float* b, float* to, int64_t count) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, to + i);
  return i;
}

int64_t AddRoundedWhole(const float* a, const float* b, float* to, int64_t count) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V sum = hn::Add(Rounded(hn::LoadU(d, a + i)), Rounded(hn::LoadU(d, b + i)));
    hn::StoreU(Rounded(sum), d, to + i);
  }
  return i;
}

int64_t NarrowWhole(const float* from, uint16_t* to, int64_t count) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const VU bits = BF16Bits(hn::LoadU(d, from + i));
    hn::StoreU(hn::DemoteTo(D16(), hn::BitCast(DI(), bits)), D16(), to + i);
  }
  return i;
}

int64_t WidenWhole(const uint16_t* from, float* to, int64_t count) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const VU bits = hn::PromoteTo(DU(), hn::LoadU(D16(), from + i));
    hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(bits)), d, to + i);
  }
  return i;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridge
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge {

HWY_EXPORT(AddWhole);
HWY_EXPORT(AddRoundedWhole);
HWY_EXPORT(NarrowWhole);
HWY_EXPORT(WidenWhole);

void AddFloats(const float* a, const float* b, float* to, int64_t count) {
  for (int64_t i = HWY_DYNAMIC_DISPATCH(AddWhole)(a, b, to, count); i < count; ++i)
    to[i] = a[i] + b[i];
}

void AddRoundedFloats(const float* a, const float* b, float* to, int64_t count) {
  const auto rounded = [](float x) { return BF16ToFloat(FloatToBF16(x)); };
  for (int64_t i = HWY_DYNAMIC_DISPATCH(AddRoundedWhole)(a, b, to, count); i < count; ++i)
    to[i] = rounded(rounded(a[i]) + rounded(b[i]));
}

void NarrowFloats(const float* from, uint16_t* to, int64_t count) {
  for (int64_t i = HWY_DYNAMIC_DISPATCH(NarrowWhole)(from, to, count); i < count; ++i)
    to[i] = FloatToBF16(from[i]);
}

void WidenFloats(const uint16_t* from, float* to, int64_t count) {
  for (int64_t i = HWY_DYNAMIC_DISPATCH(WidenWhole)(from, to, count); i < count; ++i)
    to[i] = BF16ToFloat(from[i]);
}

}  // namespace ridge
#endif
