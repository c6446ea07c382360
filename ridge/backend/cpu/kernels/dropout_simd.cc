#include "ridge/backend/cpu/kernels/keep_or_drop.h"
#include "ridge/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/dropout_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

void Keep(double* values, const uint32_t* words, int64_t count, double rate, double divisor) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<int32_t, decltype(d)> di;
  const hn::Rebind<uint32_t, decltype(d)> du;
  const auto least = hn::Set(d, rate * 0x1p24);  // exact, as is every word / 256
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(d))) {
    const auto word = hn::BitCast(di, hn::ShiftRight<8>(hn::LoadU(du, words + i)));
    const auto kept = hn::Div(hn::LoadU(d, values + i), hn::Set(d, divisor));
    hn::StoreU(hn::IfThenElseZero(hn::Ge(hn::PromoteTo(d, word), least), kept), d, values + i);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {

HWY_EXPORT(Keep);

void KeepOrDrop(double* values, const uint32_t* words, int64_t count, double rate, double divisor) {
  HWY_DYNAMIC_DISPATCH(Keep)(values, words, count, rate, divisor);
}

}  // namespace ridge::cpu
#endif
