#include <cstring>

#include "ridge/backend/cpu/kernels/cross_entropy_rows.h"
#include "ridge/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/cross_entropy_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ridge/backend/cpu/kernels/lanes-inl.h"
#include "ridge/backend/cpu/kernels/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {

// A short row is padded with -inf: neither the maximum nor the sum notices.
HWY_INLINE V LoadPadded(const float* x, size_t count) {
  alignas(64) float lanes[16];
  for (float& lane : lanes) lane = -std::numeric_limits<float>::infinity();
  std::memcpy(lanes, x, count * sizeof(float));
  return hn::Load(D(), lanes);
}

float MaxOfRow(const float* x, size_t n) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  V best = K(-std::numeric_limits<float>::infinity()), other = best;
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    best = hn::Max(best, hn::LoadU(d, x + i));
    other = hn::Max(other, hn::LoadU(d, x + i + lanes));
  }
  best = hn::Max(best, other);
  for (; i + lanes <= n; i += lanes) best = hn::Max(best, hn::LoadU(d, x + i));
  if (i < n) best = hn::Max(best, LoadPadded(x + i, n - i));
  return hn::GetLane(hn::MaxOfLanes(d, best));
}

// sum(exp(x - max)), in double over blocks: 50,000 classes lose nothing.  Keeps the terms in
// `terms` when it is not nullptr; terms may be x.
double SumOfExp(const float* x, size_t n, float max, float* terms) {
  const D d;
  const size_t lanes = hn::Lanes(d), block = 64 * lanes;
  double total = 0;
  for (size_t begin = 0; begin < n; begin += block) {
    const size_t end = HWY_MIN(n, begin + block);
    V sum = hn::Zero(d);
    size_t i = begin;
    for (; i + lanes <= end; i += lanes) {
      const V e = ExpOfNegative(hn::Sub(hn::LoadU(d, x + i), K(max)));
      if (terms != nullptr) hn::StoreU(e, d, terms + i);
      sum = hn::Add(sum, e);
    }
    if (i < end) {
      const V e = ExpOfNegative(hn::Sub(LoadPadded(x + i, end - i), K(max)));
      if (terms != nullptr) StoreFirst(e, terms + i, end - i);
      sum = hn::Add(sum, e);
    }
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
  }
  return total;
}

float LossOfRow(const float* logits, int64_t classes, int64_t label) {
  const auto n = static_cast<size_t>(classes);
  const float max = MaxOfRow(logits, n);
  const double log_sum = std::log(SumOfExp(logits, n, max, nullptr));
  return static_cast<float>(log_sum + (static_cast<double>(max) - logits[label]));
}

// dlogits holds exp(x - max) first, then is scaled while it is still in the cache.
void GradOfRow(const float* logits, int64_t classes, int64_t label, float dloss, float* dlogits) {
  const D d;
  const auto n = static_cast<size_t>(classes);
  const size_t lanes = hn::Lanes(d);
  const float max = MaxOfRow(logits, n);
  const float x_label = logits[label];  // dlogits may be logits
  const double sum = SumOfExp(logits, n, max, dlogits);
  const float scale = static_cast<float>(dloss / sum);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::Mul(hn::LoadU(d, dlogits + i), K(scale)), d, dlogits + i);
  for (; i < n; ++i) dlogits[i] *= scale;
  // p - 1 of a sure row would cancel in f32.
  const double p = std::exp(static_cast<double>(x_label) - max) / sum;
  dlogits[label] = static_cast<float>((p - 1) * dloss);
}

// The last row stands in for those behind it.
void ExponentiateRows(const float* logits, int64_t rows, int64_t classes, ShortRows& result) {
  const D d;
  const hn::RebindToSigned<D> di;
  alignas(64) int32_t starts[kRowsAtOnce];
  for (int64_t r = 0; r < kRowsAtOnce; ++r)
    starts[r] = static_cast<int32_t>(HWY_MIN(r, rows - 1) * classes);
  for (size_t r = 0; r < kRowsAtOnce; r += hn::Lanes(d)) {
    const auto start = hn::Load(di, starts + r);
    V max = hn::GatherIndex(d, logits, start);
    for (int64_t c = 1; c < classes; ++c) max = hn::Max(max, hn::GatherIndex(d, logits + c, start));
    V sum = hn::Zero(d);
    for (int64_t c = 0; c < classes; ++c) {
      const V term = ExpOfNegative(hn::Sub(hn::GatherIndex(d, logits + c, start), max));
      hn::StoreU(term, d, result.terms[c] + r);
      sum = hn::Add(sum, term);
    }
    hn::StoreU(max, d, result.max + r);
    hn::StoreU(sum, d, result.sum + r);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {

HWY_EXPORT(LossOfRow);
HWY_EXPORT(GradOfRow);
HWY_EXPORT(ExponentiateRows);

float CrossEntropyRow(const float* logits, int64_t classes, int64_t label) {
  return HWY_DYNAMIC_DISPATCH(LossOfRow)(logits, classes, label);
}

void CrossEntropyGradRow(const float* logits, int64_t classes, int64_t label, float dloss,
                         float* dlogits) {
  HWY_DYNAMIC_DISPATCH(GradOfRow)(logits, classes, label, dloss, dlogits);
}

void ExponentiateShortRows(const float* logits, int64_t rows, int64_t classes, ShortRows& result) {
  HWY_DYNAMIC_DISPATCH(ExponentiateRows)(logits, rows, classes, result);
}

}  // namespace ridge::cpu
#endif
