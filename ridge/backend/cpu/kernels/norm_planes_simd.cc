// Moments come chunk by chunk: the mean of a chunk, then its squared distances
// from that mean while it is in the first-level cache, joined by Chan's
// formula.  So x comes from memory once, and a mean far from 0 costs no digits.
//
// Every element of y is made by the same three operations whatever its position, in
// full vectors and in tails: what is normalized again, and the sign that a
// gradient's mask needs, are the same bits.
#include <cstring>

#include "ridge/backend/cpu/kernels/norm_planes.h"
#include "ridge/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/norm_planes_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, kNormLanes>;
using V = hn::Vec<D>;
constexpr size_t kStep = kNormLanes;
constexpr size_t kWidth = hn::MaxLanes(D());
constexpr size_t kVectors = kStep / kWidth;  // of one step
constexpr size_t kChunk = 256 * kStep;

// One number a lane, in registers.
struct Lanes {
  V v[kVectors];
  HWY_INLINE explicit Lanes(const float* from) {
    for (size_t k = 0; k < kVectors; ++k) v[k] = hn::LoadU(D(), from + k * kWidth);
  }
  HWY_INLINE Lanes() {
    for (size_t k = 0; k < kVectors; ++k) v[k] = hn::Zero(D());
  }
  HWY_INLINE void Store(float* to) const {
    for (size_t k = 0; k < kVectors; ++k) hn::StoreU(v[k], D(), to + k * kWidth);
  }
};

HWY_INLINE V Normal(V x, V mean, V slope, V shift) {
  return hn::MulAdd(hn::Sub(x, mean), slope, shift);
}

HWY_INLINE V Relu(V y) { return hn::IfThenZeroElse(hn::Le(y, hn::Zero(D())), y); }

// dy where y > 0, else 0.
HWY_INLINE V Masked(V dy, V y) { return hn::IfThenElseZero(hn::Gt(y, hn::Zero(D())), dy); }

// The lanes' sums over whole steps, two at a time.
HWY_INLINE Lanes SumSteps(const float* x, size_t count) {
  Lanes a, b;
  size_t i = 0;
  for (; i + 2 * kStep <= count; i += 2 * kStep) {
    for (size_t k = 0; k < kVectors; ++k) {
      a.v[k] = hn::Add(a.v[k], hn::LoadU(D(), x + i + k * kWidth));
      b.v[k] = hn::Add(b.v[k], hn::LoadU(D(), x + i + kStep + k * kWidth));
    }
  }
  for (; i + kStep <= count; i += kStep) {
    for (size_t k = 0; k < kVectors; ++k)
      a.v[k] = hn::Add(a.v[k], hn::LoadU(D(), x + i + k * kWidth));
  }
  for (size_t k = 0; k < kVectors; ++k) a.v[k] = hn::Add(a.v[k], b.v[k]);
  return a;
}

HWY_INLINE Lanes SquareSteps(const float* x, size_t count, const Lanes& mean) {
  Lanes a, b;
  size_t i = 0;
  for (; i + 2 * kStep <= count; i += 2 * kStep) {
    for (size_t k = 0; k < kVectors; ++k) {
      const V p = hn::Sub(hn::LoadU(D(), x + i + k * kWidth), mean.v[k]);
      const V q = hn::Sub(hn::LoadU(D(), x + i + kStep + k * kWidth), mean.v[k]);
      a.v[k] = hn::MulAdd(p, p, a.v[k]);
      b.v[k] = hn::MulAdd(q, q, b.v[k]);
    }
  }
  for (; i + kStep <= count; i += kStep) {
    for (size_t k = 0; k < kVectors; ++k) {
      const V p = hn::Sub(hn::LoadU(D(), x + i + k * kWidth), mean.v[k]);
      a.v[k] = hn::MulAdd(p, p, a.v[k]);
    }
  }
  for (size_t k = 0; k < kVectors; ++k) a.v[k] = hn::Add(a.v[k], b.v[k]);
  return a;
}

void JoinLane(LaneMoments& m, size_t lane, double count, double mean, double m2) {
  const double total = m.count[lane] + count, distance = mean - m.mean[lane];
  const double share = count / total;
  m.m2[lane] += m2 + distance * distance * m.count[lane] * share;
  m.mean[lane] += distance * share;
  m.count[lane] = total;
}

void AddChunk(const float* x, size_t count, LaneMoments& m) {
  const size_t steps = count / kStep;
  if (steps > 0) {
    float mean[kStep], m2[kStep];
    SumSteps(x, count).Store(mean);
    const float inverse = 1.0F / static_cast<float>(steps);
    for (size_t lane = 0; lane < kStep; ++lane) mean[lane] *= inverse;
    SquareSteps(x, count, Lanes(mean)).Store(m2);
    // `mean` is rounded; m2 is about it and not about the true mean, which
    // costs a square of the rounding only.
    for (size_t lane = 0; lane < kStep; ++lane)
      JoinLane(m, lane, static_cast<double>(steps), mean[lane], m2[lane]);
  }
  for (size_t i = steps * kStep; i < count; ++i) JoinLane(m, i % kStep, 1, x[i], 0);
}

void Moments(const float* x, int64_t count, LaneMoments& m) {
  const auto n = static_cast<size_t>(count);
  for (size_t i = 0; i < n; i += kChunk) AddChunk(x + i, HWY_MIN(kChunk, n - i), m);
}

template <bool kStream>
struct WholeVector {
  HWY_INLINE V Load(const float* from) const { return hn::LoadU(D(), from); }
  HWY_INLINE void Store(V v, float* to) const {
    if constexpr (kStream) {
      hn::Stream(v, D(), to);
    } else {
      hn::StoreU(v, D(), to);
    }
  }
};

// The first `count` elements; the others read as 0.
struct PartOfVector {
  size_t count;
  HWY_INLINE V Load(const float* from) const {
    HWY_ALIGN float lanes[kWidth] = {};
    std::memcpy(lanes, from, count * sizeof(float));
    return hn::Load(D(), lanes);
  }
  HWY_INLINE void Store(V v, float* to) const {
    HWY_ALIGN float lanes[kWidth];
    hn::Store(v, D(), lanes);
    std::memcpy(to, lanes, count * sizeof(float));
  }
};

// Calls f(i, k, at) for each vector: elements from i on, of the lanes' vector k, by at.Load and
// at.Store.
template <bool kStream, class F>
HWY_INLINE void ForVectors(size_t count, const F& f) {
  size_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    for (size_t k = 0; k < kVectors; ++k) f(i + k * kWidth, k, WholeVector<kStream>());
  }
  for (size_t k = 0; k < kVectors && i < count; ++k, i += kWidth)
    f(i, k, PartOfVector{HWY_MIN(kWidth, count - i)});
}

template <bool kStream, bool kExtra, bool kRelu>
void NormalizeAs(const float* x, const float* extra, size_t count, const LaneNorm& norm, float* y) {
  const Lanes mean(norm.mean), slope(norm.slope), shift(norm.shift);
  ForVectors<kStream>(count, [&](size_t i, size_t k, auto at) HWY_ATTR {
    V v = Normal(at.Load(x + i), mean.v[k], slope.v[k], shift.v[k]);
    if constexpr (kExtra) v = hn::Add(v, at.Load(extra + i));
    if constexpr (kRelu) v = Relu(v);
    at.Store(v, y + i);
  });
}

template <bool kStream>
void NormalizeTo(const float* x, const float* extra, int64_t count, const LaneNorm& norm, bool relu,
                 float* y) {
  const auto n = static_cast<size_t>(count);
  if (extra != nullptr) {
    return relu ? NormalizeAs<kStream, true, true>(x, extra, n, norm, y)
                : NormalizeAs<kStream, true, false>(x, extra, n, norm, y);
  }
  return relu ? NormalizeAs<kStream, false, true>(x, extra, n, norm, y)
              : NormalizeAs<kStream, false, false>(x, extra, n, norm, y);
}

void Normalize(const float* x, const float* extra, int64_t count, const LaneNorm& norm, bool relu,
               bool stream, float* y) {
  stream ? NormalizeTo<true>(x, extra, count, norm, relu, y)
         : NormalizeTo<false>(x, extra, count, norm, relu, y);
}

template <bool kRelu>
void SumChunk(const float* x, const float* dy, size_t count, const LaneNorm& norm,
              LaneGradSums& sums) {
  const Lanes mean(norm.mean), slope(norm.slope), shift(norm.shift);
  Lanes g, gx;
  ForVectors<false>(count, [&](size_t i, size_t k, auto at) HWY_ATTR {
    const V centered = hn::Sub(at.Load(x + i), mean.v[k]);
    V d = at.Load(dy + i);  // 0 behind the end
    if constexpr (kRelu) d = Masked(d, hn::MulAdd(centered, slope.v[k], shift.v[k]));
    g.v[k] = hn::Add(g.v[k], d);
    gx.v[k] = hn::MulAdd(d, centered, gx.v[k]);
  });
  float sum_g[kStep], sum_gx[kStep];
  g.Store(sum_g);
  gx.Store(sum_gx);
  for (size_t lane = 0; lane < kStep; ++lane) {
    sums.g[lane] += static_cast<double>(sum_g[lane]);
    sums.gx[lane] += static_cast<double>(sum_gx[lane]);
  }
}

void GradSums(const float* x, const float* dy, int64_t count, const LaneNorm& norm, bool relu,
              LaneGradSums& sums) {
  const auto n = static_cast<size_t>(count);
  for (size_t i = 0; i < n; i += kChunk) {
    const size_t part = HWY_MIN(kChunk, n - i);
    relu ? SumChunk<true>(x + i, dy + i, part, norm, sums)
         : SumChunk<false>(x + i, dy + i, part, norm, sums);
  }
}

template <bool kStream, bool kRelu>
void GradAs(const float* x, const float* dy, size_t count, const LaneNorm& norm,
            const LaneGrad& grad, float* dx) {
  const Lanes mean(norm.mean), slope(norm.slope), shift(norm.shift), mean_g(grad.mean_g),
      mean_gx(grad.mean_gx);
  ForVectors<kStream>(count, [&](size_t i, size_t k, auto at) HWY_ATTR {
    const V centered = hn::Sub(at.Load(x + i), mean.v[k]);
    V d = at.Load(dy + i);
    if constexpr (kRelu) d = Masked(d, hn::MulAdd(centered, slope.v[k], shift.v[k]));
    const V rest = hn::NegMulAdd(centered, mean_gx.v[k], hn::Sub(d, mean_g.v[k]));
    at.Store(hn::Mul(slope.v[k], rest), dx + i);
  });
}

void Grad(const float* x, const float* dy, int64_t count, const LaneNorm& norm,
          const LaneGrad& grad, bool relu, bool stream, float* dx) {
  const auto n = static_cast<size_t>(count);
  if (stream) {
    return relu ? GradAs<true, true>(x, dy, n, norm, grad, dx)
                : GradAs<true, false>(x, dy, n, norm, grad, dx);
  }
  return relu ? GradAs<false, true>(x, dy, n, norm, grad, dx)
              : GradAs<false, false>(x, dy, n, norm, grad, dx);
}

}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {

HWY_EXPORT(Moments);
HWY_EXPORT(Normalize);
HWY_EXPORT(GradSums);
HWY_EXPORT(Grad);

void AddMoments(const float* x, int64_t count, LaneMoments& moments) {
  HWY_DYNAMIC_DISPATCH(Moments)(x, count, moments);
}

void NormalizePlane(const float* x, const float* extra, int64_t count, const LaneNorm& norm,
                    bool relu, bool stream, float* y) {
  HWY_DYNAMIC_DISPATCH(Normalize)(x, extra, count, norm, relu, stream, y);
}

void AddGradSums(const float* x, const float* dy, int64_t count, const LaneNorm& norm, bool relu,
                 LaneGradSums& sums) {
  HWY_DYNAMIC_DISPATCH(GradSums)(x, dy, count, norm, relu, sums);
}

void NormGradPlane(const float* x, const float* dy, int64_t count, const LaneNorm& norm,
                   const LaneGrad& grad, bool relu, bool stream, float* dx) {
  HWY_DYNAMIC_DISPATCH(Grad)(x, dy, count, norm, grad, relu, stream, dx);
}

}  // namespace ridge::cpu
#endif
