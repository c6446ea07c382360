#include "ridge/backend/cpu/kernels/update_runs.h"
#include "ridge/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/update_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ridge/backend/cpu/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {

// g = grad_scale grad;  m' = beta1 m + (1 - beta1) g;  v' = beta2 v + (1 - beta2) g g;
// param' = decay param - step_size m' / (sqrt(v') / v_correction + epsilon), rounded once: a
// product left to the compiler's choice would round in the last lanes as it does not in full ones.
HWY_INLINE void AdamAt(const AdamNumbers& n, const AdamArrays& a, int64_t i, size_t count) {
  const D d;
  const V old_param = LoadSome(a.param + i, count);
  const V grad = hn::Mul(hn::Set(d, n.grad_scale), LoadSome(a.grad + i, count));
  const V g = hn::MulAdd(hn::Set(d, n.decay_grad), old_param, grad);
  const V m = hn::MulAdd(hn::Set(d, n.beta1), LoadSome(a.m + i, count),
                         hn::Mul(hn::Set(d, n.one_minus_beta1), g));
  const V v = hn::MulAdd(hn::Set(d, n.beta2), LoadSome(a.v + i, count),
                         hn::Mul(hn::Set(d, n.one_minus_beta2), hn::Mul(g, g)));
  const V root = hn::Div(hn::Sqrt(v), hn::Set(d, n.v_correction));
  const V step = hn::Div(hn::Mul(hn::Set(d, n.step_size), m), hn::Add(root, hn::Set(d, n.epsilon)));
  StoreSome(m, a.new_m + i, count);
  StoreSome(v, a.new_v + i, count);
  StoreSome(hn::MulSub(old_param, hn::Set(d, n.decay_param), step), a.new_param + i, count);
}

void Adam(const AdamNumbers& numbers, const AdamArrays& arrays, int64_t begin, int64_t end) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t i = begin;
  for (; i + lanes <= end; i += lanes) AdamAt(numbers, arrays, i, static_cast<size_t>(lanes));
  if (i < end) AdamAt(numbers, arrays, i, static_cast<size_t>(end - i));
}

// g = grad_scale grad;  b' = momentum b + g;  g = nesterov ? g + momentum b' : b';  param' = param
// - lr g
HWY_INLINE void SgdAt(const SgdNumbers& n, const SgdArrays& a, int64_t i, size_t count) {
  const D d;
  const V param = LoadSome(a.param + i, count), momentum = hn::Set(d, n.momentum);
  const V grad = hn::Mul(hn::Set(d, n.grad_scale), LoadSome(a.grad + i, count));
  V g = hn::MulAdd(hn::Set(d, n.weight_decay), param, grad);
  if (a.buffer != nullptr) {
    const V buffer = hn::MulAdd(momentum, LoadSome(a.buffer + i, count), g);
    StoreSome(buffer, a.new_buffer + i, count);
    g = n.nesterov ? hn::MulAdd(momentum, buffer, g) : buffer;
  }
  StoreSome(hn::NegMulAdd(hn::Set(d, n.lr), g, param), a.new_param + i, count);
}

void Sgd(const SgdNumbers& numbers, const SgdArrays& arrays, int64_t begin, int64_t end) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t i = begin;
  for (; i + lanes <= end; i += lanes) SgdAt(numbers, arrays, i, static_cast<size_t>(lanes));
  if (i < end) SgdAt(numbers, arrays, i, static_cast<size_t>(end - i));
}

}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {

HWY_EXPORT(Adam);
HWY_EXPORT(Sgd);

void AdamRun(const AdamNumbers& numbers, const AdamArrays& arrays, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(Adam)(numbers, arrays, begin, end);
}

void SgdRun(const SgdNumbers& numbers, const SgdArrays& arrays, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(Sgd)(numbers, arrays, begin, end);
}

}  // namespace ridge::cpu
#endif
