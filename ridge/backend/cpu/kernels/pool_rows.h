// Pooling of one row of outputs (or, backward, of inputs), vectorized over channels.
//
// A tensor is [planes, H, W, lanes]: nChw16c has 16 lanes and B * C/16 planes, row-major has one
// lane and B * C planes.
#pragma once
#include <cstdint>

#include "ridge/graph/ops/shared/window.h"

namespace ridge::cpu {

struct PoolShape {
  WindowAxis y, x;
  int64_t planes = 0;
  int64_t lanes = 1;
  bool wide_index = false;  // i32 instead of u8

  int64_t input_plane() const { return y.input * x.input * lanes; }
  int64_t output_plane() const { return y.output * x.output * lanes; }
};

// Taps [first, last) of output o that are inside the input.
struct TapRange {
  int64_t first, last;
};
inline TapRange TapsInside(const WindowAxis& axis, int64_t o) {
  const int64_t start = o * axis.stride - axis.pad_begin;
  const int64_t d = axis.dilation;
  const int64_t first = start >= 0 ? 0 : (-start + d - 1) / d;
  const int64_t last = start >= axis.input ? 0 : (axis.input - 1 - start) / d + 1;
  return {first, last < axis.kernel ? last : axis.kernel};
}

// Calls f(o, tap) for the outputs that see input position i, in order of the tap.
template <typename F>
inline __attribute__((always_inline)) void ForEachWindow(const WindowAxis& axis, int64_t i,
                                                         const F& f) {
  for (int64_t tap = 0; tap < axis.kernel; ++tap) {
    const int64_t from = i + axis.pad_begin - tap * axis.dilation;
    if (from < 0 || from % axis.stride != 0) continue;
    if (from / axis.stride < axis.output) f(from / axis.stride, tap);
  }
}

// Row oy of y and of index, from one plane of x.
void MaxPoolRow(const PoolShape& shape, const float* x, int64_t oy, float* y, void* index);
// Row iy of dx, from one plane of index and dy.
void MaxPoolGradRow(const PoolShape& shape, const void* index, const float* dy, int64_t iy,
                    float* dx);
// divisors [OH, OW]: what the sum of each window is divided by.
void AvgPoolRow(const PoolShape& shape, const float* divisors, const float* x, int64_t oy,
                float* y);
void AvgPoolGradRow(const PoolShape& shape, const float* divisors, const float* dy, int64_t iy,
                    float* dx);

}  // namespace ridge::cpu
