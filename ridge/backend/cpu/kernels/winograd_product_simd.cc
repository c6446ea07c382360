// The matrix products of the Winograd convolution.
//
// Sums stay in registers: 6 rows by 4 vectors of 16 (12 by 2 where the panel is narrow); a Zen 4
// core does one multiply-add of 16 a cycle and loads as much, so ten loads for 24 products leave it
// at its peak although both operands come from the second-level cache.  Each sum runs over the
// inner dimension in order.
#include "ridge/backend/cpu/kernels/winograd_tiles.h"
#include "ridge/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/winograd_product_simd.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, kWinogradBlock>;
using V = hn::Vec<D>;
constexpr int64_t kB = kWinogradBlock;
constexpr int kRowGrain = kWinogradRowGrain;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));

// kRows rows of kBlocks blocks: m (+)= v u.  One vector of each block at a time.
template <int kRows, int kBlocks>
HWY_INLINE void ProductRows(const Product& p, const float* v, const float* u, float* m) {
  const D d;
  V sums[kRows][kBlocks];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b)
      sums[r][b] = p.add ? hn::Load(d, m + (b * p.rows + r) * kB) : hn::Zero(d);
  }
  for (int64_t k = 0; k < p.inner_blocks; ++k, v += p.rows * kB) {
    // The next block is elsewhere, which no hardware prefetcher expects.
    for (int r = 0; r < kRows; ++r) hwy::Prefetch(v + (p.rows + r) * kB);
    for (int64_t i = 0; i < kB; ++i, u += kBlocks * kB) {
      V columns[kBlocks];
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; ++b) columns[b] = hn::Load(d, u + b * kB);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const V x = hn::Set(d, v[r * kB + i]);
#pragma GCC unroll 4
        for (int b = 0; b < kBlocks; ++b) sums[r][b] = hn::MulAdd(x, columns[b], sums[r][b]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) hn::Store(sums[r][b], d, m + (b * p.rows + r) * kB);
  }
}

template <int kRows, int kBlocks>
void ProductOf(const Product& p, const float* v, const float* u, float* m) {
  for (int64_t f = 0; f < kFrequencies; ++f) {
    const float* vf = v + f * p.v_stride;
    const float* uf = u + f * WeightStride(p.inner_blocks, kBlocks);
    float* mf = m + f * FrequencyStride(kBlocks, p.rows);
    for (int64_t lane = 0; lane < kB; lane += kLanes) {
      int64_t r = 0;
      for (; r + kRows <= p.rows; r += kRows)
        ProductRows<kRows, kBlocks>(p, vf + r * kB, uf + lane, mf + r * kB + lane);
      if (r < p.rows)
        ProductRows<kRowGrain, kBlocks>(p, vf + r * kB, uf + lane, mf + r * kB + lane);
    }
  }
}

void ProductAll(const Product& p, const float* v, const float* u, float* m) {
  if (p.blocks == 1) return ProductOf<2 * kRowGrain, 1>(p, v, u, m);
  if (p.blocks == 2) return ProductOf<2 * kRowGrain, 2>(p, v, u, m);
  if (p.blocks == 3) return ProductOf<kRowGrain, 3>(p, v, u, m);
  ProductOf<kRowGrain, 4>(p, v, u, m);
}

// Channels i .. i + kChannels of a block of v by kBlocks blocks of m.
template <int kChannels, int kBlocks>
HWY_INLINE void GradChannels(const GradProduct& p, const float* v, const float* m, float* u) {
  const D d;
  V sums[kChannels][kBlocks];
#pragma GCC unroll 16
  for (int c = 0; c < kChannels; ++c) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b)
      sums[c][b] = p.add ? hn::Load(d, u + (c * kBlocks + b) * kB) : hn::Zero(d);
  }
  for (int64_t t = 0; t < p.count; ++t) {
    V columns[kBlocks];
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) columns[b] = hn::Load(d, m + (b * p.rows + t) * kB);
#pragma GCC unroll 16
    for (int c = 0; c < kChannels; ++c) {
      const V x = hn::Set(d, v[t * kB + c]);
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; ++b) sums[c][b] = hn::MulAdd(x, columns[b], sums[c][b]);
    }
  }
#pragma GCC unroll 16
  for (int c = 0; c < kChannels; ++c) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) hn::Store(sums[c][b], d, u + (c * kBlocks + b) * kB);
  }
}

template <int kChannels, int kBlocks>
void GradProductOf(const GradProduct& p, const float* v, const float* m, float* u) {
  for (int64_t f = 0; f < kFrequencies; ++f) {
    for (int64_t k = 0; k < p.inner_blocks; ++k) {
      const float* from = v + f * p.v_stride + k * p.rows * kB;
      float* to = u + f * p.u_stride + k * kB * kBlocks * kB;
      for (int64_t i = 0; i < kB; i += kChannels) {
        for (int64_t lane = 0; lane < kB; lane += kLanes)
          GradChannels<kChannels, kBlocks>(p, from + i, m + f * p.m_stride + lane,
                                           to + i * kBlocks * kB + lane);
      }
    }
  }
}

void GradProductAll(const GradProduct& p, const float* v, const float* m, float* u) {
  if (p.blocks == 1) return GradProductOf<16, 1>(p, v, m, u);
  if (p.blocks == 2) return GradProductOf<8, 2>(p, v, m, u);
  if (p.blocks == 3) return GradProductOf<4, 3>(p, v, m, u);
  GradProductOf<4, 4>(p, v, m, u);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {

HWY_EXPORT(ProductAll);
HWY_EXPORT(GradProductAll);

void WinogradProduct(const Product& p, const float* v, const float* u, float* m) {
  HWY_DYNAMIC_DISPATCH(ProductAll)(p, v, u, m);
}

void WinogradGradProduct(const GradProduct& p, const float* v, const float* m, float* u) {
  HWY_DYNAMIC_DISPATCH(GradProductAll)(p, v, m, u);
}

}  // namespace ridge::cpu
#endif
