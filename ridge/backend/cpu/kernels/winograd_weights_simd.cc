// The weights of the Winograd convolution: G w G^T, and of their gradient G^T du G.
#include "ridge/backend/cpu/kernels/strided_copy.h"
#include "ridge/backend/cpu/kernels/winograd_tiles.h"
#include "ridge/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/winograd_weights_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ridge/backend/cpu/kernels/winograd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace {
using namespace winograd;

// G w
HWY_INLINE void TransformWeight(const V (&w)[3], V (&u)[6]) {
  const V third = hn::Mul(K(1.0F / 3.0F), w[2]);
  const V even_a = hn::NegMulAdd(K(2.0F / 3.0F), w[0], hn::Neg(third));
  const V odd_a = hn::Mul(K(-kA / 1.5F), w[1]);
  const V even_b = hn::MulAdd(K(1.0F / 6.0F), w[0], third);
  const V odd_b = hn::Mul(K(kB1 / 6.0F), w[1]);
  u[0] = w[0];
  u[1] = hn::Add(even_a, odd_a);
  u[2] = hn::Sub(even_a, odd_a);
  u[3] = hn::Add(even_b, odd_b);
  u[4] = hn::Sub(even_b, odd_b);
  u[5] = w[2];
}

// G^T du
HWY_INLINE void TransformGradWeight(const V (&u)[6], V (&w)[3]) {
  const V sum_a = hn::Add(u[1], u[2]), dif_a = hn::Sub(u[1], u[2]);
  const V sum_b = hn::Add(u[3], u[4]), dif_b = hn::Sub(u[3], u[4]);
  w[0] = hn::MulAdd(K(1.0F / 6.0F), sum_b, hn::NegMulAdd(K(2.0F / 3.0F), sum_a, u[0]));
  w[1] = hn::MulAdd(K(kB1 / 6.0F), dif_b, hn::Mul(K(-kA / 1.5F), dif_a));
  w[2] = hn::MulAdd(K(1.0F / 3.0F), hn::Sub(sum_b, sum_a), u[5]);
}

// u of one inner channel and one block of outer ones, from `taps` [9][16].
HWY_INLINE void TransformTaps(float* taps, bool flipped, int64_t stride, float* u) {
  // Reversed rows and columns are a walk from the last tap backwards.
  const int64_t step = flipped ? -kB : kB;
  float* first = flipped ? taps + (kWinogradWeightTaps - 1) * kB : taps;
  ForEachVector([&](int64_t lane) HWY_ATTR {
    Transform<3, 6>({first + lane, 3 * step, step}, {u + lane, kP * stride, stride},
                    [](const V(&in)[3], V(&out)[6]) HWY_ATTR { TransformWeight(in, out); });
  });
}

void TransformWeights(const WinogradShape& s, const WinogradWeights& layout, const float* w,
                      const BlockRange& range, float* u) {
  constexpr int64_t kTaps = kWinogradWeightTaps, kFloat = sizeof(float);
  alignas(64) float taps[kB * kTaps * kB];  // [16 inner][9][16 outer]
  const int64_t stride = WeightStride(range.inner, range.outer);
  // Where the taps of inner channels are contiguous, they are transposed together.
  const int64_t together = layout.inner_stride == kTaps ? kB : 1;
  for (int64_t block = 0; block < range.outer; ++block) {
    const int64_t outer = (range.first_outer + block) * kB;
    const int64_t channels = std::min(kB, s.outer - outer);
    std::fill_n(taps, kB * kTaps * kB, 0.0F);
    for (int64_t k = 0; k < range.inner * kB; k += together) {
      const int64_t inner = range.first_inner * kB + k;
      const int64_t count = std::clamp<int64_t>(s.inner - inner, 0, together);
      if (count < together) std::fill_n(taps, together * kTaps * kB, 0.0F);
      if (count > 0) {
        const float* from = w + outer * layout.outer_stride + inner * layout.inner_stride;
        TransposeSquare(kFloat, reinterpret_cast<const std::byte*>(from),
                        layout.outer_stride * kFloat, reinterpret_cast<std::byte*>(taps),
                        kB * kFloat, channels, count * kTaps);
      }
      for (int64_t i = 0; i < together; ++i) {
        TransformTaps(taps + i * kTaps * kB, layout.flipped, stride,
                      u + ((k + i) * range.outer + block) * kB);
      }
    }
  }
}

void GradWeights(const WinogradShape& s, const float* u, int64_t u_stride, int64_t first_inner,
                 int64_t inner_count, int64_t first_block, int64_t blocks, float* dw) {
  alignas(64) float taps[kWinogradWeightTaps * kB];
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t first = (first_block + block) * kB, channels = std::min(kB, s.outer - first);
    for (int64_t k = 0; k < inner_count; ++k) {
      ForEachVector([&](int64_t lane) HWY_ATTR {
        float* from = const_cast<float*>(u) + (k * blocks + block) * kB + lane;
        Transform<6, 3>({from, kP * u_stride, u_stride}, {taps + lane, 3 * kB, kB},
                        [](const V(&in)[6], V(&out)[3]) HWY_ATTR { TransformGradWeight(in, out); });
      });
      for (int64_t n = 0; n < channels; ++n) {
        float* to = dw + ((first + n) * s.inner + first_inner + k) * kWinogradWeightTaps;
        for (int64_t tap = 0; tap < kWinogradWeightTaps; ++tap) to[tap] = taps[tap * kB + n];
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {

HWY_EXPORT(TransformWeights);
HWY_EXPORT(GradWeights);

void WinogradTransformWeights(const WinogradShape& shape, const WinogradWeights& layout,
                              const float* w, const BlockRange& range, float* u) {
  HWY_DYNAMIC_DISPATCH(TransformWeights)(shape, layout, w, range, u);
}

void WinogradGradWeights(const WinogradShape& shape, const float* u, int64_t u_stride,
                         int64_t first_inner, int64_t inner_count, int64_t first_block,
                         int64_t blocks, float* dw) {
  HWY_DYNAMIC_DISPATCH(GradWeights)
  (shape, u, u_stride, first_inner, inner_count, first_block, blocks, dw);
}

}  // namespace ridge::cpu
#endif
