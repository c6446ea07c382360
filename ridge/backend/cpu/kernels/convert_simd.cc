// Conversions between float registers and bf16, u8 and bool arrays.
#include "ridge/backend/cpu/kernels/simd_targets.h"
#include "ridge/backend/cpu/kernels/tile_program.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/convert_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
template <typename T>
using Like = hn::Rebind<T, D>;  // as many lanes of another type

// bf16 is the upper half of an f32.
hn::Vec<D> Widen(const uint16_t* from) {
  const auto upper = hn::PromoteTo(Like<uint32_t>(), hn::LoadU(Like<uint16_t>(), from));
  return hn::BitCast(D(), hn::ShiftLeft<16>(upper));
}
hn::Vec<D> Widen(const uint8_t* from) {
  return hn::ConvertTo(D(), hn::PromoteTo(Like<int32_t>(), hn::LoadU(Like<uint8_t>(), from)));
}

// bf16, ties to even; NaN stays NaN.
void Shorten(hn::Vec<D> x, uint16_t* to) {
  const Like<int32_t> d;
  const auto bits = hn::BitCast(d, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(d, 0x7FFF)), odd);
  const auto quiet = hn::Or(bits, hn::Set(d, 0x400000));
  const auto chosen = hn::IfThenElse(hn::RebindMask(d, hn::IsNaN(x)), quiet, rounded);
  const auto upper = hn::ShiftRight<16>(chosen);
  hn::StoreU(hn::BitCast(Like<uint16_t>(), hn::DemoteTo(Like<int16_t>(), upper)), Like<uint16_t>(),
             to);
}
void Shorten(hn::Vec<D> x, uint8_t* to) {  // true is any number but 0, NaN too
  const Like<int32_t> d;
  const auto zero = hn::RebindMask(d, hn::Eq(x, hn::Zero(D())));
  hn::StoreU(hn::DemoteTo(Like<uint8_t>(), hn::IfThenZeroElse(zero, hn::Set(d, 1))),
             Like<uint8_t>(), to);
}

template <typename T>
int64_t LoadAll(const void* from, float* to, int64_t count) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(Widen(static_cast<const T*>(from) + i), D(), to + i);
  return i;
}

template <typename T>
int64_t StoreAll(const float* from, void* to, int64_t count) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) Shorten(hn::LoadU(D(), from + i), static_cast<T*>(to) + i);
  return i;
}

int64_t LoadWhole(DType dtype, const void* from, float* to, int64_t count) {
  if (dtype == DType::kBF16) return LoadAll<uint16_t>(from, to, count);
  if (dtype == DType::kU8 || dtype == DType::kBool) return LoadAll<uint8_t>(from, to, count);
  return 0;
}

int64_t StoreWhole(DType dtype, const float* from, void* to, int64_t count) {
  if (dtype == DType::kBF16) return StoreAll<uint16_t>(from, to, count);
  if (dtype == DType::kBool) return StoreAll<uint8_t>(from, to, count);
  return 0;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {

HWY_EXPORT(LoadWhole);
HWY_EXPORT(StoreWhole);

int64_t LoadVectors(DType dtype, const void* from, float* to, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(LoadWhole)(dtype, from, to, count);
}
int64_t StoreVectors(DType dtype, const float* from, void* to, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(StoreWhole)(dtype, from, to, count);
}

}  // namespace ridge::cpu
#endif
