#include <cmath>

#include "ridge/backend/cpu/kernels/layer_norm_rows.h"
#include "ridge/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/layer_norm_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ridge/backend/cpu/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {

// Calls f(i, count) for whole vectors, then once for the rest.
template <class F>
HWY_INLINE void ForEachVector(size_t width, const F& f) {
  const size_t lanes = hn::Lanes(D());
  size_t i = 0;
  for (; i + lanes <= width; i += lanes) f(i, lanes);
  if (i < width) f(i, width - i);
}

// A sum in four vectors: one would make each addition wait for the one before.
struct Sums {
  V v[4];
};
HWY_INLINE Sums NoSums() {
  const V zero = hn::Zero(D());
  return {{zero, zero, zero, zero}};
}
HWY_INLINE double Total(const Sums& sums) {
  const V all = hn::Add(hn::Add(sums.v[0], sums.v[1]), hn::Add(sums.v[2], sums.v[3]));
  return hn::GetLane(hn::SumOfLanes(D(), all));
}
// Calls f(k, i, count) as ForEachVector, with k the place of the vector in its group of four.
template <class F>
HWY_INLINE void ForEachFour(size_t width, const F& f) {
  const size_t lanes = hn::Lanes(D());
  size_t i = 0;
  for (; i + 4 * lanes <= width; i += 4 * lanes) {
    f(0, i, lanes);
    f(1, i + lanes, lanes);
    f(2, i + 2 * lanes, lanes);
    f(3, i + 3 * lanes, lanes);
  }
  for (; i + lanes <= width; i += lanes) f(0, i, lanes);
  if (i < width) f(1, i, width - i);
}

HWY_INLINE V FirstLanes(V v, size_t count) {
  const D d;
  if (count == hn::Lanes(d)) return v;
  return hn::IfThenElseZero(hn::FirstN(d, count), v);
}

template <typename Y>
HWY_INLINE void NormalizeRow(const float* x, int64_t width_in, double epsilon, const float* scale,
                             const float* shift, Y* y, float* mean_out, float* rstd_out) {
  const D d;
  const auto width = static_cast<size_t>(width_in);
  const auto n = static_cast<double>(width);
  Sums sum = NoSums();
  ForEachFour(width, [&](int k, size_t i, size_t count)
                         HWY_ATTR { sum.v[k] = hn::Add(sum.v[k], LoadSome(x + i, count)); });
  const double mean = Total(sum) / n;
  const V center = hn::Set(d, static_cast<float>(mean));
  Sums squares = NoSums(), rest = NoSums();
  ForEachFour(width, [&](int k, size_t i, size_t count) HWY_ATTR {
    const V distance = FirstLanes(hn::Sub(LoadSome(x + i, count), center), count);
    squares.v[k] = hn::MulAdd(distance, distance, squares.v[k]);
    rest.v[k] = hn::Add(rest.v[k], distance);
  });
  // What rounding the mean to f32 left over is taken out of the variance again.
  const double left = Total(rest) / n;
  const double rstd = 1 / std::sqrt(Total(squares) / n - left * left + epsilon);
  const V factor = hn::Set(d, static_cast<float>(rstd));
  ForEachVector(width, [&](size_t i, size_t count) HWY_ATTR {
    V v = hn::Mul(hn::Sub(LoadSome(x + i, count), center), factor);
    if (scale != nullptr) v = hn::Mul(v, LoadSome(scale + i, count));
    if (shift != nullptr) v = hn::Add(v, LoadSome(shift + i, count));
    StoreSome(v, y + i, count);
  });
  *mean_out = static_cast<float>(mean);
  *rstd_out = static_cast<float>(rstd);
}

void ForwardRow(const float* x, int64_t width, double epsilon, const float* scale,
                const float* shift, float* y, float* mean, float* rstd) {
  NormalizeRow(x, width, epsilon, scale, shift, y, mean, rstd);
}
void ForwardRowBF16(const float* x, int64_t width, double epsilon, const float* scale,
                    const float* shift, uint16_t* y, float* mean, float* rstd) {
  NormalizeRow(x, width, epsilon, scale, shift, y, mean, rstd);
}

template <typename Y>
HWY_INLINE void GradRow(const float* x, const Y* dy, int64_t width_in, float mean, float rstd,
                        const float* scale, float* dx, float* dscale, float* dshift) {
  const D d;
  const auto width = static_cast<size_t>(width_in);
  const V center = hn::Set(d, mean), factor = hn::Set(d, rstd);
  Sums sum = NoSums(), dot = NoSums();
  const auto normalized = [&](size_t i, size_t count) HWY_ATTR {
    return FirstLanes(hn::Mul(hn::Sub(LoadSome(x + i, count), center), factor), count);
  };
  const auto scaled = [&](size_t i, size_t count) HWY_ATTR {
    const V g = LoadSome(dy + i, count);
    return scale == nullptr ? g : hn::Mul(g, LoadSome(scale + i, count));
  };
  ForEachFour(width, [&](int k, size_t i, size_t count) HWY_ATTR {
    const V n = normalized(i, count), dn = scaled(i, count);
    sum.v[k] = hn::Add(sum.v[k], dn);
    dot.v[k] = hn::MulAdd(dn, n, dot.v[k]);
    if (dscale == nullptr) return;
    const V g = LoadSome(dy + i, count);
    StoreSome(hn::MulAdd(g, n, LoadSome(dscale + i, count)), dscale + i, count);
    StoreSome(hn::Add(g, LoadSome(dshift + i, count)), dshift + i, count);
  });
  const V mean_dn = hn::Set(d, static_cast<float>(Total(sum) / static_cast<double>(width)));
  const V mean_dot = hn::Set(d, static_cast<float>(Total(dot) / static_cast<double>(width)));
  ForEachVector(width, [&](size_t i, size_t count) HWY_ATTR {
    const V n = normalized(i, count), dn = scaled(i, count);
    const V inner = hn::NegMulAdd(n, mean_dot, hn::Sub(dn, mean_dn));
    StoreSome(hn::Mul(factor, inner), dx + i, count);
  });
}

void BackwardRow(const float* x, const float* dy, int64_t width, float mean, float rstd,
                 const float* scale, float* dx, float* dscale, float* dshift) {
  GradRow(x, dy, width, mean, rstd, scale, dx, dscale, dshift);
}
void BackwardRowBF16(const float* x, const uint16_t* dy, int64_t width, float mean, float rstd,
                     const float* scale, float* dx, float* dscale, float* dshift) {
  GradRow(x, dy, width, mean, rstd, scale, dx, dscale, dshift);
}

void RmsForwardRow(const float* x, int64_t width_in, double epsilon, const float* scale, float* y,
                   float* rstd_out) {
  const D d;
  const auto width = static_cast<size_t>(width_in);
  Sums squares = NoSums();
  ForEachFour(width, [&](int k, size_t i, size_t count) HWY_ATTR {
    const V v = LoadSome(x + i, count);
    squares.v[k] = hn::MulAdd(v, v, squares.v[k]);
  });
  const double rstd = 1 / std::sqrt(Total(squares) / static_cast<double>(width) + epsilon);
  const V factor = hn::Set(d, static_cast<float>(rstd));
  ForEachVector(width, [&](size_t i, size_t count) HWY_ATTR {
    V v = hn::Mul(LoadSome(x + i, count), factor);
    if (scale != nullptr) v = hn::Mul(v, LoadSome(scale + i, count));
    StoreSome(v, y + i, count);
  });
  *rstd_out = static_cast<float>(rstd);
}

void RmsBackwardRow(const float* x, const float* dy, int64_t width_in, float rstd,
                    const float* scale, float* dx, float* dscale) {
  const D d;
  const auto width = static_cast<size_t>(width_in);
  const V factor = hn::Set(d, rstd);
  Sums dot = NoSums();
  const auto scaled = [&](V g, size_t i, size_t count) HWY_ATTR {
    return scale == nullptr ? g : hn::Mul(g, LoadSome(scale + i, count));
  };
  ForEachFour(width, [&](int k, size_t i, size_t count) HWY_ATTR {
    const V n = hn::Mul(LoadSome(x + i, count), factor), g = LoadSome(dy + i, count);
    dot.v[k] = hn::MulAdd(scaled(g, i, count), n, dot.v[k]);
    if (dscale != nullptr)
      StoreSome(hn::MulAdd(g, n, LoadSome(dscale + i, count)), dscale + i, count);
  });
  const V mean_dot = hn::Set(d, static_cast<float>(Total(dot) / static_cast<double>(width)));
  ForEachVector(width, [&](size_t i, size_t count) HWY_ATTR {
    const V n = hn::Mul(LoadSome(x + i, count), factor);
    const V dn = scaled(LoadSome(dy + i, count), i, count);
    StoreSome(hn::Mul(factor, hn::NegMulAdd(n, mean_dot, dn)), dx + i, count);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {

HWY_EXPORT(ForwardRow);
HWY_EXPORT(ForwardRowBF16);
HWY_EXPORT(BackwardRow);
HWY_EXPORT(BackwardRowBF16);
HWY_EXPORT(RmsForwardRow);
HWY_EXPORT(RmsBackwardRow);

void LayerNormRow(const float* x, int64_t width, double epsilon, const float* scale,
                  const float* shift, float* y, float* mean, float* rstd) {
  HWY_DYNAMIC_DISPATCH(ForwardRow)(x, width, epsilon, scale, shift, y, mean, rstd);
}

void LayerNormGradRow(const float* x, const float* dy, int64_t width, float mean, float rstd,
                      const float* scale, float* dx, float* dscale, float* dshift) {
  HWY_DYNAMIC_DISPATCH(BackwardRow)(x, dy, width, mean, rstd, scale, dx, dscale, dshift);
}

void LayerNormRow(const float* x, int64_t width, double epsilon, const float* scale,
                  const float* shift, uint16_t* y, float* mean, float* rstd) {
  HWY_DYNAMIC_DISPATCH(ForwardRowBF16)(x, width, epsilon, scale, shift, y, mean, rstd);
}

void LayerNormGradRow(const float* x, const uint16_t* dy, int64_t width, float mean, float rstd,
                      const float* scale, float* dx, float* dscale, float* dshift) {
  HWY_DYNAMIC_DISPATCH(BackwardRowBF16)(x, dy, width, mean, rstd, scale, dx, dscale, dshift);
}

void RmsNormRow(const float* x, int64_t width, double epsilon, const float* scale, float* y,
                float* rstd) {
  HWY_DYNAMIC_DISPATCH(RmsForwardRow)(x, width, epsilon, scale, y, rstd);
}

void RmsNormGradRow(const float* x, const float* dy, int64_t width, float rstd, const float* scale,
                    float* dx, float* dscale) {
  HWY_DYNAMIC_DISPATCH(RmsBackwardRow)(x, dy, width, rstd, scale, dx, dscale);
}

}  // namespace ridge::cpu
#endif
