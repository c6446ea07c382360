// The common steps of f64 tiles (f64_tiles.h) and their conversions, vectorized.
#include <limits>

#include "ridge/backend/cpu/kernels/f64_tiles.h"
#include "ridge/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/f64_tiles_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;
template <typename T>
using Narrow = hn::Rebind<T, D>;  // as many lanes of another type

HWY_INLINE V K(double value) { return hn::Set(D(), value); }
HWY_INLINE V Zero() { return hn::Zero(D()); }
HWY_INLINE V Truth(hn::Mask<D> m) { return hn::IfThenElseZero(m, K(1.0)); }
// hn::Ne is false for NaN on AVX, so it is not used.
HWY_INLINE hn::Mask<D> Differ(V a, V b) { return hn::Not(hn::Eq(a, b)); }
HWY_INLINE hn::Mask<D> IsTrue(V x) { return Differ(x, Zero()); }

struct Tile {
  double* dst;
  const double *a, *b, *c;
  int64_t count;
};

// The last, short vector is computed in lanes of its own: nothing outside the tile is touched.
template <class F>
HWY_INLINE void Map(const Tile& t, F f) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= t.count; i += lanes) {
    hn::StoreU(f(hn::LoadU(d, t.a + i), hn::LoadU(d, t.b + i), hn::LoadU(d, t.c + i)), d,
               t.dst + i);
  }
  if (i == t.count) return;
  alignas(64) double a[8] = {}, b[8] = {}, c[8] = {};
  for (int64_t k = 0; k < t.count - i; ++k) {
    a[k] = t.a[i + k];
    b[k] = t.b[i + k];
    c[k] = t.c[i + k];
  }
  hn::Store(f(hn::Load(d, a), hn::Load(d, b), hn::Load(d, c)), d, a);
  for (int64_t k = 0; k < t.count - i; ++k) t.dst[i + k] = a[k];
}

// NaN of a wins; a NaN of b is what the comparison leaves, as in the operator's definition.
HWY_INLINE V Larger(V a, V b) { return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b); }
HWY_INLINE V Smaller(V a, V b) { return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b); }

#define RIDGE_TILE_STEP(Name, op, operands, ...)
#define RIDGE_EXACT_STEP(Name, op, operands, ...)                                 \
  void Run##Name(const Tile& t) {                                                 \
    Map(t, [](V a, V b, V c) HWY_ATTR { return (void)b, (void)c, __VA_ARGS__; }); \
  }
#include "ridge/backend/cpu/kernels/tile_steps.def"

// By TileOp; nullptr for what is computed element by element.
constexpr void (*kRun[])(const Tile&) = {
#define RIDGE_TILE_STEP(Name, ...) nullptr,
#define RIDGE_EXACT_STEP(Name, ...) Run##Name,
#include "ridge/backend/cpu/kernels/tile_steps.def"
};

bool RunStep(const F64Step& step, double* const* registers, int64_t count) {
  const auto run = step.tile ? kRun[static_cast<size_t>(*step.tile)] : nullptr;
  if (run == nullptr) return false;
  run({registers[step.dst], registers[step.operands[0]], registers[step.operands[1]],
       registers[step.operands[2]], count});
  return true;
}

// Toward zero, saturating; NaN is 0.
template <typename T>
void RoundToInteger(const Tile& t) {
  const auto low = static_cast<double>(std::numeric_limits<T>::min());
  const auto high = static_cast<double>(std::numeric_limits<T>::max());
  Map(t, [low, high](V x, V, V) HWY_ATTR {
    const V whole = hn::Min(hn::Max(hn::Trunc(x), K(low)), K(high));
    return hn::IfThenElseZero(hn::Eq(x, x), whole);
  });
}

bool Round(DType to, double* values, int64_t count) {
  const Tile t{values, values, values, values, count};
  switch (to) {
    case DType::kF32:
      Map(t,
          [](V x, V, V) HWY_ATTR { return hn::PromoteTo(D(), hn::DemoteTo(Narrow<float>(), x)); });
      return true;
    case DType::kI64:
      return RoundToInteger<int64_t>(t), true;
    case DType::kI32:
      return RoundToInteger<int32_t>(t), true;
    case DType::kU8:
      return RoundToInteger<uint8_t>(t), true;
    case DType::kI8:
      return RoundToInteger<int8_t>(t), true;
    case DType::kBool:
      Map(t, [](V x, V, V) HWY_ATTR { return Truth(IsTrue(x)); });
      return true;
    default:
      return false;
  }
}

HWY_INLINE V Widen(const float* from) {
  return hn::PromoteTo(D(), hn::LoadU(Narrow<float>(), from));
}
HWY_INLINE V Widen(const int32_t* from) {
  return hn::PromoteTo(D(), hn::LoadU(Narrow<int32_t>(), from));
}
HWY_INLINE V Widen(const int64_t* from) {
  return hn::ConvertTo(D(), hn::LoadU(Narrow<int64_t>(), from));
}
HWY_INLINE V Widen(const uint8_t* from) {
  return hn::PromoteTo(D(), hn::PromoteTo(Narrow<int32_t>(), hn::LoadU(Narrow<uint8_t>(), from)));
}

// bf16 is the upper half of an f32.
HWY_INLINE V Widen(const uint16_t* from) {
  const auto upper = hn::PromoteTo(Narrow<uint32_t>(), hn::LoadU(Narrow<uint16_t>(), from));
  return hn::PromoteTo(D(), hn::BitCast(Narrow<float>(), hn::ShiftLeft<16>(upper)));
}

HWY_INLINE void Shorten(V x, float* to) {
  hn::StoreU(hn::DemoteTo(Narrow<float>(), x), Narrow<float>(), to);
}
HWY_INLINE void Shorten(V x, int32_t* to) {
  hn::StoreU(hn::DemoteTo(Narrow<int32_t>(), x), Narrow<int32_t>(), to);
}
HWY_INLINE void Shorten(V x, uint8_t* to) {
  hn::StoreU(hn::DemoteTo(Narrow<uint8_t>(), hn::DemoteTo(Narrow<int32_t>(), x)), Narrow<uint8_t>(),
             to);
}
// bf16, ties to even; NaN stays NaN.
HWY_INLINE void Shorten(V x, uint16_t* to) {
  const Narrow<int32_t> d;
  const auto narrow = hn::DemoteTo(Narrow<float>(), x);
  const auto bits = hn::BitCast(d, narrow);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(d, 0x7FFF)), odd);
  const auto quiet = hn::Or(bits, hn::Set(d, 0x400000));
  const auto chosen = hn::IfThenElse(hn::RebindMask(d, hn::IsNaN(narrow)), quiet, rounded);
  const auto upper = hn::DemoteTo(Narrow<int16_t>(), hn::ShiftRight<16>(chosen));
  hn::StoreU(hn::BitCast(Narrow<uint16_t>(), upper), Narrow<uint16_t>(), to);
}
// 2^63 stands for the largest integer, which is no double.
HWY_INLINE void Shorten(V x, int64_t* to) {
  const Narrow<int64_t> d;
  const V end = K(0x1p63);
  const auto whole = hn::ConvertTo(d, hn::IfThenZeroElse(hn::Ge(x, end), x));
  const auto most = hn::Set(d, std::numeric_limits<int64_t>::max());
  hn::StoreU(hn::IfThenElse(hn::RebindMask(d, hn::Ge(x, end)), most, whole), d, to);
}

constexpr int64_t kBlock = 16;

template <typename T>
void LoadAll(const void* from, double* to, int64_t count) {
  const auto* data = static_cast<const T*>(from);
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  for (int64_t i = 0; i < count / kBlock * kBlock; i += lanes)
    hn::StoreU(Widen(data + i), D(), to + i);
}

template <typename T>
void StoreAll(const double* from, void* to, int64_t count) {
  auto* data = static_cast<T*>(to);
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  for (int64_t i = 0; i < count / kBlock * kBlock; i += lanes)
    Shorten(hn::LoadU(D(), from + i), data + i);
}

bool LoadDtype(DType dtype, const void* from, double* to, int64_t count) {
  switch (dtype) {
    case DType::kF32:
      return LoadAll<float>(from, to, count), true;
    case DType::kI64:
      return LoadAll<int64_t>(from, to, count), true;
    case DType::kBF16:
      return LoadAll<uint16_t>(from, to, count), true;
    case DType::kI32:
      return LoadAll<int32_t>(from, to, count), true;
    case DType::kU8:
      return LoadAll<uint8_t>(from, to, count), true;
    default:
      return false;
  }
}

bool StoreDtype(DType dtype, const double* from, void* to, int64_t count) {
  switch (dtype) {
    case DType::kF32:
      return StoreAll<float>(from, to, count), true;
    case DType::kI64:
      return StoreAll<int64_t>(from, to, count), true;
    case DType::kBF16:
      return StoreAll<uint16_t>(from, to, count), true;
    case DType::kI32:
      return StoreAll<int32_t>(from, to, count), true;
    case DType::kU8:
    case DType::kBool:
      return StoreAll<uint8_t>(from, to, count), true;
    default:
      return false;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {

HWY_EXPORT(RunStep);
HWY_EXPORT(Round);
HWY_EXPORT(LoadDtype);
HWY_EXPORT(StoreDtype);

bool RunF64Simd(const F64Step& step, double* const* registers, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(RunStep)(step, registers, count);
}
bool RoundF64Simd(DType to, double* values, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(Round)(to, values, count);
}
bool LoadF64Simd(DType dtype, const void* from, double* to, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(LoadDtype)(dtype, from, to, count);
}
bool StoreF64Simd(DType dtype, const double* from, void* to, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(StoreDtype)(dtype, from, to, count);
}

}  // namespace ridge::cpu
#endif
