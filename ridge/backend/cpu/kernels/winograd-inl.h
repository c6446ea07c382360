// What the transforms of the Winograd convolution share, for files compiled once per instruction
// set: the interpolation points, and a transform along both dimensions of a tile for a vector of
// channels.
#if defined(RIDGE_CPU_WINOGRAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGE_CPU_WINOGRAD_INL_H_
#undef RIDGE_CPU_WINOGRAD_INL_H_
#else
#define RIDGE_CPU_WINOGRAD_INL_H_
#endif

#include "hwy/highway.h"
#include "ridge/backend/cpu/kernels/simd_math-inl.h"
#include "ridge/backend/cpu/kernels/winograd_tiles.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace winograd {

constexpr int64_t kB = kWinogradBlock, kT = kWinogradTile, kP = kWinogradPatch;

// The points a and b with a^2 = 1/2 and b^2 = 2, and their cubes.
constexpr float kA = 0.70710678F, kA3 = 0.35355339F, kB1 = 1.41421356F, kB3 = 2.82842712F;

// Element (i, j) is a vector at data + i * row + j * column.
struct Grid {
  float* data;
  int64_t row, column;
  V Get(int i, int j) const { return hn::LoadU(D(), data + i * row + j * column); }
  void Set(int i, int j, V v) const { hn::StoreU(v, D(), data + i * row + j * column); }
};

// to [kTo, kTo] = F(F(from [kFrom, kFrom])) along both dimensions.
template <int kFrom, int kTo, class F>
HWY_INLINE void Transform(const Grid& from, const Grid& to, const F& f) {
  V half[kTo][kFrom];
#pragma GCC unroll 6
  for (int j = 0; j < kFrom; ++j) {
    V in[kFrom], out[kTo];
#pragma GCC unroll 6
    for (int i = 0; i < kFrom; ++i) in[i] = from.Get(i, j);
    f(in, out);
#pragma GCC unroll 6
    for (int i = 0; i < kTo; ++i) half[i][j] = out[i];
  }
#pragma GCC unroll 6
  for (int i = 0; i < kTo; ++i) {
    V out[kTo];
    f(half[i], out);
#pragma GCC unroll 6
    for (int j = 0; j < kTo; ++j) to.Set(i, j, out[j]);
  }
}

// Calls f(lane) for each vector of a block.
template <class F>
HWY_INLINE void ForEachVector(const F& f) {
  for (int64_t lane = 0; lane < kB; lane += static_cast<int64_t>(hn::Lanes(D()))) f(lane);
}

}  // namespace winograd
}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();
#endif
