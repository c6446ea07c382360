// The steps of a TileProgram, vectorized: a function for each row of tile_steps.def, with the loop
// inside, so the call costs a few cycles a tile.
#include <cstring>

#include "ridge/backend/cpu/kernels/tile_program.h"
#include "ridge/core/dtype.h"
#include "ridge/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/tile_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ridge/backend/cpu/kernels/f16_lanes-inl.h"
#include "ridge/backend/cpu/kernels/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace {

struct Tile {
  float* dst;
  const float *a, *b, *c;
  size_t count;
  float p, q;
};

template <class F>
HWY_INLINE void Map1(const Tile& t, F f) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= t.count; i += lanes) hn::StoreU(f(hn::LoadU(d, t.a + i)), d, t.dst + i);
  const size_t rest = t.count - i;
  if (rest > 0) StoreFirst(f(LoadFirst(t.a + i, rest)), t.dst + i, rest);
}

template <class F>
HWY_INLINE void Map2(const Tile& t, F f) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= t.count; i += lanes) {
    hn::StoreU(f(hn::LoadU(d, t.a + i), hn::LoadU(d, t.b + i)), d, t.dst + i);
  }
  const size_t rest = t.count - i;
  if (rest > 0) StoreFirst(f(LoadFirst(t.a + i, rest), LoadFirst(t.b + i, rest)), t.dst + i, rest);
}

template <class F>
HWY_INLINE void Map3(const Tile& t, F f) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= t.count; i += lanes) {
    hn::StoreU(f(hn::LoadU(d, t.a + i), hn::LoadU(d, t.b + i), hn::LoadU(d, t.c + i)), d,
               t.dst + i);
  }
  const size_t rest = t.count - i;
  if (rest == 0) return;
  StoreFirst(f(LoadFirst(t.a + i, rest), LoadFirst(t.b + i, rest), LoadFirst(t.c + i, rest)),
             t.dst + i, rest);
}

template <class F>
void MapScalar(const Tile& t, F f) {
  for (size_t i = 0; i < t.count; ++i) t.dst[i] = f(t.a[i], t.b[i]);
}

using Mask = hn::Mask<D>;
HWY_INLINE V Truth(Mask m) { return hn::IfThenElseZero(m, K(1.0F)); }
// hn::Ne is false for NaN on AVX, so it is not used.
HWY_INLINE Mask Differ(V a, V b) { return hn::Not(hn::Eq(a, b)); }
HWY_INLINE Mask IsTrue(V x) { return Differ(x, K(0.0F)); }
HWY_INLINE V Zero() { return hn::Zero(D()); }

constexpr float kGeluScale = 0.79788456080286536F;  // sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715F;
constexpr float kDensity = 0.39894228040143268F;  // 1 / sqrt(2 pi)

// e^(-x^2 / 2).  Sixteenths of an octave can be taken from x^2 at once: the product of x^2 and
// 8 / ln(2) is not rounded before the whole ones are taken off.
HWY_INLINE V Bell(V x) {
  if constexpr (!kSixteenLanes) return ExpOfNegative(hn::Mul(hn::Mul(x, K(-0.5F)), x));
  constexpr float kSlope = 11.541560327111707F;  // 8 / ln(2)
  const V square = hn::Min(K(176.0F), hn::Mul(x, x));
  const V z = hn::NegMulAdd(square, K(kSlope), K(kSixteenthMagic));
  const V f = hn::NegMulAdd(square, K(kSlope), hn::Sub(K(kSixteenthMagic), z));
  const V power = PowerOfSixteenths(z);
  V p = hn::MulAdd(K(1.3550540e-5F), f, K(9.3838479e-4F));  // 2^(f/16), |f| <= 1/2
  p = hn::MulAdd(p, f, K(4.3321699e-2F));
  const V bell = hn::MulAdd(hn::Mul(power, f), p, power);
  return hn::IfThenZeroElse(hn::Gt(square, K(-2 * kLeastExpArgument)), bell);
}

// The normal distribution function, from its tail: P(N > a) = e^(-a^2/2) t p(t) for a >= 0 and
// t = 1 / (1 + 0.3 a).  p is our own fit over [0, 13], relative error 1.2e-7: one exponential for
// the function and its density, and no second branch (the form is Hastings', 1955).
HWY_INLINE V NormalCdf(V x, V bell) {
  const V t = hn::Div(K(1.0F), hn::MulAdd(K(0.3F), hn::Abs(x), K(1.0F)));
  V p = K(0.0361950301F);
  p = hn::MulAdd(p, t, K(-0.159378983F));
  p = hn::MulAdd(p, t, K(0.210119464F));
  p = hn::MulAdd(p, t, K(-0.0571682741F));
  p = hn::MulAdd(p, t, K(0.130416897F));
  p = hn::MulAdd(p, t, K(0.0993470003F));
  p = hn::MulAdd(p, t, K(0.120845549F));
  p = hn::MulAdd(p, t, K(0.119623262F));
  const V tail = hn::Mul(hn::Mul(p, t), bell);
  return hn::IfThenElse(hn::Lt(x, Zero()), tail, hn::Sub(K(1.0F), tail));
}
HWY_INLINE V Gelu(V x) { return hn::Mul(x, NormalCdf(x, Bell(x))); }
HWY_INLINE V GeluSlope(V x) {
  const V bell = Bell(x);
  return hn::MulAdd(hn::Mul(x, K(kDensity)), bell, NormalCdf(x, bell));
}
// 1/2 + tanh(u) / 2 = 1 / (1 + e^(-2u)), which does not cancel for negative u; here e^(-2u).
HWY_INLINE V GeluTanhTail(V x) {
  const V cubic = hn::MulAdd(hn::Mul(x, x), K(kGeluCubic), K(1.0F));
  return SafeExp(hn::Mul(hn::Mul(x, cubic), K(-2 * kGeluScale)));
}
HWY_INLINE V GeluTanh(V x) { return hn::Div(x, hn::Add(K(1.0F), GeluTanhTail(x))); }
// s + x s (1 - s) 2 du/dx with s = 1 / (1 + e); 1 - s is e s, which overflows where e is large.
HWY_INLINE V GeluTanhSlope(V x) {
  const V e = GeluTanhTail(x);
  const V s = hn::Div(K(1.0F), hn::Add(K(1.0F), e));
  const V rest = hn::IfThenElse(hn::Lt(e, K(1.0F)), hn::Mul(e, s), hn::Sub(K(1.0F), s));
  const V du = hn::MulAdd(hn::Mul(x, x), K(6 * kGeluCubic * kGeluScale), K(2 * kGeluScale));
  return hn::MulAdd(hn::Mul(x, du), hn::Mul(s, rest), s);
}
HWY_INLINE V SiluSlope(V x) {
  const V s = Sigmoid(x);
  return hn::Mul(s, hn::MulAdd(x, hn::Sub(K(1.0F), s), K(1.0F)));
}
HWY_INLINE V SignOf(V x) {
  const V one = hn::CopySign(K(1.0F), x);
  const V sign = hn::IfThenElse(hn::Eq(x, Zero()), Zero(), one);
  return hn::IfThenElse(hn::IsNaN(x), x, sign);
}

// NaN of a wins; a NaN of b is what the comparison leaves, as in the operator's definition.
HWY_INLINE V Larger(V a, V b) { return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b); }
HWY_INLINE V Smaller(V a, V b) { return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b); }

HWY_INLINE V RoundToBF16(V x) {
  const hn::RebindToSigned<D> d;
  return hn::BitCast(D(), hn::And(RoundUpperHalf(x), hn::Set(d, ~0xFFFF)));
}

HWY_INLINE V Limited(V x, V low, V high) {
  const V floor = hn::IfThenElse(hn::Lt(x, low), low, x);
  return hn::IfThenElse(hn::Gt(x, high), high, floor);
}
HWY_INLINE V UnitClip(V x) { return Limited(x, Zero(), K(1.0F)); }
// alpha (e^x - 1) for x <= 0: with t = tanh(x / 2) it is 2 t / (1 - t), which does not cancel.
HWY_INLINE V Elu(V x, float alpha) {
  const V t = SafeTanh(hn::Mul(x, K(0.5F)));
  const V bend = hn::Div(hn::Mul(t, K(2 * alpha)), hn::Sub(K(1.0F), t));
  return hn::IfThenElse(hn::Gt(x, Zero()), x, bend);
}
// tanh(ln(1 + z)) = n / (n + 2) with n = z (z + 2), z = e^x.
HWY_INLINE V Mish(V x) {
  const V z = SafeExp(x), n = hn::Mul(z, hn::Add(z, K(2.0F)));
  const V y = hn::Mul(x, hn::Div(n, hn::Add(n, K(2.0F))));
  return hn::IfThenElse(hn::Gt(x, K(20.0F)), x, y);
}

#define RIDGE_LAMBDA1(...) [&t](V a) HWY_ATTR { return __VA_ARGS__; }
#define RIDGE_LAMBDA2(...) [&t](V a, V b) HWY_ATTR { return __VA_ARGS__; }
#define RIDGE_LAMBDA3(...) [&t](V a, V b, V c) HWY_ATTR { return __VA_ARGS__; }
#define RIDGE_TILE_STEP(Name, op, operands, ...) \
  void Run##Name(const Tile& t) { Map##operands(t, RIDGE_LAMBDA##operands(__VA_ARGS__)); }
#define RIDGE_SCALAR_STEP(Name, op, operands, ...)                               \
  void Run##Name(const Tile& t) {                                                \
    MapScalar(t, [](float a, [[maybe_unused]] float b) { return __VA_ARGS__; }); \
  }
#include "ridge/backend/cpu/kernels/tile_steps.def"
#undef RIDGE_LAMBDA1
#undef RIDGE_LAMBDA2
#undef RIDGE_LAMBDA3

// By TileOp.
constexpr void (*kRun[])(const Tile&) = {
#define RIDGE_TILE_STEP(Name, ...) Run##Name,
#include "ridge/backend/cpu/kernels/tile_steps.def"
};

}  // namespace

void RunSteps(const TileStep* steps, size_t step_count, float* const* registers, int64_t count) {
  for (size_t s = 0; s < step_count; ++s) {
    const TileStep& step = steps[s];
    kRun[static_cast<size_t>(step.op)]({registers[step.dst], registers[step.a], registers[step.b],
                                        registers[step.c], static_cast<size_t>(count), step.p,
                                        step.q});
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {

HWY_EXPORT(RunSteps);

void RunTile(std::span<const TileStep> steps, float* const* registers, int64_t count) {
  HWY_DYNAMIC_DISPATCH(RunSteps)(steps.data(), steps.size(), registers, count);
}

}  // namespace ridge::cpu
#endif
