// Conversions between float registers and arrays of bf16, f16, u8 and bool.
#include "ridge/backend/cpu/kernels/for_dtype.h"
#include "ridge/backend/cpu/kernels/tile_program.h"
#include "ridge/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/convert_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ridge/backend/cpu/kernels/f16_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace {

template <typename T>
using Like = hn::Rebind<T, D>;  // as many lanes of another type

V Widen(const uint16_t* from) { return LoadFloats(from); }
V Widen(const F16* from) {
  return FromF16(hn::LoadU(Like<uint16_t>(), reinterpret_cast<const uint16_t*>(from)));
}
V Widen(const uint8_t* from) {
  return hn::ConvertTo(D(), hn::PromoteTo(Like<int32_t>(), hn::LoadU(Like<uint8_t>(), from)));
}

void Shorten(V x, uint16_t* to) { StoreFloats(x, to); }
void Shorten(V x, F16* to) {
  hn::StoreU(ToF16(x), Like<uint16_t>(), reinterpret_cast<uint16_t*>(to));
}
void Shorten(V x, uint8_t* to) {  // true is any number but 0, NaN too
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
  if (dtype == DType::kF16) return LoadAll<F16>(from, to, count);
  if (dtype == DType::kU8 || dtype == DType::kBool) return LoadAll<uint8_t>(from, to, count);
  return 0;
}

int64_t StoreWhole(DType dtype, const float* from, void* to, int64_t count) {
  if (dtype == DType::kBF16) return StoreAll<uint16_t>(from, to, count);
  if (dtype == DType::kF16) return StoreAll<F16>(from, to, count);
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

void WidenRow(const uint16_t* from, int64_t count, float* to) {
  for (int64_t i = LoadVectors(DType::kBF16, from, to, count); i < count; ++i)
    to[i] = BF16ToFloat(from[i]);
}
void RoundRow(const float* from, int64_t count, uint16_t* to) {
  for (int64_t i = StoreVectors(DType::kBF16, from, to, count); i < count; ++i)
    to[i] = FloatToBF16(from[i]);
}

}  // namespace ridge::cpu
#endif
