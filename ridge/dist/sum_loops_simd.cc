#include "ridge/core/dtype.h"
#include "ridge/core/simd_targets.h"
#include "ridge/dist/sum_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/dist/sum_loops_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ridge/core/bf16_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridge {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

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

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridge
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge {

HWY_EXPORT(AddWhole);
HWY_EXPORT(AddRoundedWhole);

void AddFloats(const float* a, const float* b, float* to, int64_t count) {
  for (int64_t i = HWY_DYNAMIC_DISPATCH(AddWhole)(a, b, to, count); i < count; ++i)
    to[i] = a[i] + b[i];
}

void AddRoundedFloats(const float* a, const float* b, float* to, int64_t count) {
  const auto rounded = [](float x) { return BF16ToFloat(FloatToBF16(x)); };
  for (int64_t i = HWY_DYNAMIC_DISPATCH(AddRoundedWhole)(a, b, to, count); i < count; ++i)
    to[i] = rounded(rounded(a[i]) + rounded(b[i]));
}

}  // namespace ridge
#endif
