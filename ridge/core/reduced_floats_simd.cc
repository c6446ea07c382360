#include "ridge/core/dtype.h"
#include "ridge/core/reduced_floats.h"
#include "ridge/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/core/reduced_floats_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ridge/core/bf16_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridge {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using DU = hn::RebindToUnsigned<D>;
using DI = hn::RebindToSigned<D>;
using D16 = hn::Rebind<uint16_t, D>;

// Loops over whole vectors: how many numbers they did.
int64_t ToBF16Whole(const float* from, uint16_t* to, int64_t count) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const hn::Vec<DU> bits = BF16Bits(hn::LoadU(d, from + i));
    hn::StoreU(hn::DemoteTo(D16(), hn::BitCast(DI(), bits)), D16(), to + i);
  }
  return i;
}

#if HWY_TARGET <= HWY_AVX2
// A NaN keeps its sign alone.
int64_t ToF16Whole(const float* from, uint16_t* to, int64_t count) {
  const D d;
  const hn::Rebind<hwy::float16_t, D> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const hn::Vec<D> x = hn::LoadU(d, from + i);
    if (HWY_LIKELY(hn::AllFalse(d, hn::IsNaN(x)))) {
      hn::StoreU(hn::BitCast(D16(), hn::DemoteTo(half, x)), D16(), to + i);
      continue;
    }
    for (int64_t lane = i; lane < i + lanes; ++lane) to[lane] = FloatToF16(from[lane]);
  }
  return i;
}
#else
// These processors do not round to f16 themselves.
int64_t ToF16Whole(const float*, uint16_t*, int64_t) { return 0; }
#endif

int64_t FromBF16Whole(const uint16_t* from, float* to, int64_t count) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const hn::Vec<DU> bits = hn::PromoteTo(DU(), hn::LoadU(D16(), from + i));
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

HWY_EXPORT(ToBF16Whole);
HWY_EXPORT(ToF16Whole);
HWY_EXPORT(FromBF16Whole);

void FloatsToBF16(const float* from, uint16_t* to, int64_t count) {
  for (int64_t i = HWY_DYNAMIC_DISPATCH(ToBF16Whole)(from, to, count); i < count; ++i)
    to[i] = FloatToBF16(from[i]);
}

void FloatsToF16(const float* from, uint16_t* to, int64_t count) {
  for (int64_t i = HWY_DYNAMIC_DISPATCH(ToF16Whole)(from, to, count); i < count; ++i)
    to[i] = FloatToF16(from[i]);
}

void BF16ToFloats(const uint16_t* from, float* to, int64_t count) {
  for (int64_t i = HWY_DYNAMIC_DISPATCH(FromBF16Whole)(from, to, count); i < count; ++i)
    to[i] = BF16ToFloat(from[i]);
}

}  // namespace ridge
#endif
