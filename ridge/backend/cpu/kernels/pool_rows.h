// Pooling of one row of outputs (or, backward, of inputs), vectorized over channels.
//
// A tensor is [planes, H, W, lanes]: nChw16c has 16 lanes and B * C/16 planes, row-major has one
// lane and B * C planes.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ridge/graph/ops/shared/window.h"

namespace ridge::cpu {

// [first, last): the taps of an output that are inside the input, or outputs.
struct TapRange {
  int64_t first, last;
};

// An output whose window holds some input position, and the tap that it is there.
struct Window {
  int64_t output, tap;
};

// One axis with its divisions done beforehand.
struct PoolAxis {
  explicit PoolAxis(const WindowAxis& axis);

  WindowAxis axis;
  std::vector<TapRange> taps;        // by output
  std::vector<Window> windows;       // of all input positions, one after another
  std::vector<size_t> window_begin;  // by input position; one more at the end
  TapRange whole = {0, 0};           // outputs with all their taps inside
  bool disjoint = false;             // windows side by side, from the first element on
  bool has_empty_window = false;     // some output sees padding only

  std::span<const Window> WindowsOf(int64_t i) const {
    const auto at = static_cast<size_t>(i);
    return {windows.data() + window_begin[at], window_begin[at + 1] - window_begin[at]};
  }
};

struct PoolShape {
  PoolAxis y, x;
  int64_t planes = 0;
  int64_t lanes = 1;
  bool wide_index = false;  // i32 instead of u8

  int64_t input_row() const { return x.axis.input * lanes; }
  int64_t output_row() const { return x.axis.output * lanes; }
  int64_t input_plane() const { return y.axis.input * input_row(); }
  int64_t output_plane() const { return y.axis.output * output_row(); }
};

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
