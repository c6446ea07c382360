// The loop behind the memory numbers of a device profile.
#include "ridge/backend/cpu/machine_facts.h"
#include "ridge/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/triad_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void TriadLoop(const float* b, const float* c, float scale, float* a, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto s = hn::Set(d, scale);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::MulAdd(s, hn::LoadU(d, c + i), hn::LoadU(d, b + i)), d, a + i);
  for (; i < count; ++i) a[i] = b[i] + scale * c[i];
}

}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {

HWY_EXPORT(TriadLoop);

void Triad(const float* b, const float* c, float scale, float* a, int64_t count) {
  HWY_DYNAMIC_DISPATCH(TriadLoop)(b, c, scale, a, count);
}

}  // namespace ridge::cpu
#endif
