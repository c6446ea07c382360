// A vector holds the same number of several signals.
#include "ridge/core/simd_targets.h"
#include "ridge/data/sound/fft_passes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/data/sound/fft_simd.cc"
#include <utility>

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ridge {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<double, kFftLanes>;
using V = hn::Vec<D>;
constexpr int64_t kWidth = static_cast<int64_t>(hn::MaxLanes(D()));

// a + b i
struct Complex {
  V re, im;
};

HWY_INLINE Complex operator+(Complex a, Complex b) {
  return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
}
HWY_INLINE Complex operator-(Complex a, Complex b) {
  return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)};
}
HWY_INLINE Complex Scale(Complex a, double by) {
  const V factor = hn::Set(D(), by);
  return {hn::Mul(a.re, factor), hn::Mul(a.im, factor)};
}
HWY_INLINE Complex TimesMinusI(Complex a) { return {a.im, hn::Neg(a.re)}; }
HWY_INLINE Complex Times(Complex a, const double* root) {
  const V c = hn::Set(D(), root[0]), s = hn::Set(D(), root[1]);
  return {hn::Sub(hn::Mul(a.re, c), hn::Mul(a.im, s)), hn::Add(hn::Mul(a.re, s), hn::Mul(a.im, c))};
}

// Number i of a row of numbers; `lane`: of the first signal of the vector.
HWY_INLINE Complex Load(const double* from, int64_t i, int64_t lane) {
  const double* at = from + 2 * i * kFftLanes + lane;
  return {hn::LoadU(D(), at), hn::LoadU(D(), at + kFftLanes)};
}
HWY_INLINE void Store(Complex a, double* to, int64_t i, int64_t lane) {
  double* at = to + 2 * i * kFftLanes + lane;
  hn::StoreU(a.re, D(), at);
  hn::StoreU(a.im, D(), at + kFftLanes);
}

struct Pass {
  const FftStage& stage;
  const double* twiddles;
  const double* from;
  double* to;
  int64_t lane;

  HWY_INLINE Complex In(int64_t q, int64_t p, int64_t k) const {
    return Load(from, q + stage.stride * (p + stage.rest * k), lane);
  }
  HWY_INLINE void Out(Complex a, int64_t q, int64_t p, int64_t j) const {
    const double* root = twiddles + stage.twiddles + 2 * (p * stage.radix + j);
    Store(Times(a, root), to, q + stage.stride * (stage.radix * p + j), lane);
  }
  HWY_INLINE void OutFirst(Complex a, int64_t q, int64_t p) const {
    Store(a, to, q + stage.stride * stage.radix * p, lane);
  }
};

HWY_INLINE void Butterfly2(const Pass& pass, int64_t q, int64_t p) {
  const Complex a = pass.In(q, p, 0), b = pass.In(q, p, 1);
  pass.OutFirst(a + b, q, p);
  pass.Out(a - b, q, p, 1);
}

HWY_INLINE void Butterfly4(const Pass& pass, int64_t q, int64_t p) {
  const Complex a = pass.In(q, p, 0), b = pass.In(q, p, 1);
  const Complex c = pass.In(q, p, 2), d = pass.In(q, p, 3);
  const Complex even = a + c, odd = b + d, left = a - c, right = TimesMinusI(b - d);
  pass.OutFirst(even + odd, q, p);
  pass.Out(left + right, q, p, 1);
  pass.Out(even - odd, q, p, 2);
  pass.Out(left - right, q, p, 3);
}

HWY_INLINE void Butterfly5(const Pass& pass, int64_t q, int64_t p) {
  constexpr double kCos1 = 0.30901699437494742410, kCos2 = -0.80901699437494742410;
  constexpr double kSin1 = 0.95105651629515357212, kSin2 = 0.58778525229247312917;
  const Complex a = pass.In(q, p, 0);
  const Complex b = pass.In(q, p, 1), c = pass.In(q, p, 2);
  const Complex d = pass.In(q, p, 3), e = pass.In(q, p, 4);
  const Complex outer = b + e, inner = c + d, outer_less = b - e, inner_less = c - d;
  const Complex first = a + Scale(outer, kCos1) + Scale(inner, kCos2);
  const Complex second = a + Scale(outer, kCos2) + Scale(inner, kCos1);
  const Complex turn1 = TimesMinusI(Scale(outer_less, kSin1) + Scale(inner_less, kSin2));
  const Complex turn2 = TimesMinusI(Scale(outer_less, kSin2) - Scale(inner_less, kSin1));
  pass.OutFirst(a + outer + inner, q, p);
  pass.Out(first + turn1, q, p, 1);
  pass.Out(second + turn2, q, p, 2);
  pass.Out(second - turn2, q, p, 3);
  pass.Out(first - turn1, q, p, 4);
}

HWY_INLINE void ButterflyAny(const Pass& pass, int64_t q, int64_t p) {
  const int64_t radix = pass.stage.radix;
  const double* roots = pass.twiddles + pass.stage.roots;
  for (int64_t j = 0; j < radix; ++j) {
    Complex sum = pass.In(q, p, 0);
    for (int64_t k = 1; k < radix; ++k)
      sum = sum + Times(pass.In(q, p, k), roots + 2 * (j * k % radix));
    pass.Out(sum, q, p, j);
  }
}

HWY_INLINE void RunPass(const Pass& pass) {
  for (int64_t p = 0; p < pass.stage.rest; ++p) {
    for (int64_t q = 0; q < pass.stage.stride; ++q) {
      switch (pass.stage.radix) {
        case 2:
          Butterfly2(pass, q, p);
          break;
        case 4:
          Butterfly4(pass, q, p);
          break;
        case 5:
          Butterfly5(pass, q, p);
          break;
        default:
          ButterflyAny(pass, q, p);
      }
    }
  }
}

HWY_INLINE void StorePower(Complex a, double* power, int64_t bin, int64_t lane) {
  hn::StoreU(hn::Add(hn::Mul(a.re, a.re), hn::Mul(a.im, a.im)), D(),
             power + bin * kFftLanes + lane);
}

// Z is the transform of the even samples plus i times that of the odd ones: with conj Z[n-k] beside
// it the two come apart, and X[k] = even[k] + exp(-2 pi i k / length) odd[k].
HWY_INLINE void Split(const FftCall& call, const double* z, double* power, int64_t lane) {
  const int64_t n = call.complex;
  for (int64_t k = 0; k <= n; ++k) {
    const Complex a = Load(z, k % n, lane);
    Complex b = Load(z, (n - k) % n, lane);
    b.im = hn::Neg(b.im);
    const Complex even = Scale(a + b, 0.5), odd = TimesMinusI(Scale(a - b, 0.5));
    StorePower(even + Times(odd, call.split + 2 * k), power, k, lane);
  }
}

// The signal as complex numbers: an even one pair by pair, an odd one with imaginary parts of 0.
HWY_INLINE void TakeSignals(const FftCall& call, const double* signals, double* to, int64_t lane) {
  const bool pairs = call.length != call.complex;
  for (int64_t i = 0; i < call.complex; ++i) {
    const double* at = signals + (pairs ? 2 : 1) * i * kFftLanes + lane;
    Store({hn::LoadU(D(), at), pairs ? hn::LoadU(D(), at + kFftLanes) : hn::Zero(D())}, to, i,
          lane);
  }
}

void RunAll(const FftCall& call, const double* signals, double* scratch, double* power) {
  double* from = scratch;
  double* to = scratch + 2 * call.complex * kFftLanes;
  for (int64_t lane = 0; lane < kFftLanes; lane += kWidth) TakeSignals(call, signals, from, lane);
  for (const FftStage& stage : *call.stages) {
    for (int64_t lane = 0; lane < kFftLanes; lane += kWidth)
      RunPass({stage, call.twiddles, from, to, lane});
    std::swap(from, to);
  }
  for (int64_t lane = 0; lane < kFftLanes; lane += kWidth) {
    if (call.length != call.complex) {
      Split(call, from, power, lane);
    } else {
      for (int64_t k = 0; k <= call.length / 2; ++k)
        StorePower(Load(from, k, lane), power, k, lane);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridge
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge {

HWY_EXPORT(RunAll);

void RunFft(const FftCall& call, const double* signals, double* scratch, double* power) {
  HWY_DYNAMIC_DISPATCH(RunAll)(call, signals, scratch, power);
}

}  // namespace ridge
#endif
