// The geometry of the pools over x [B, C, H, W] and their gradients.
#pragma once
#include <initializer_list>

#include "ridge/graph/ops/shared/window.h"

namespace ridge {

inline constexpr std::initializer_list<const char*> kPoolAttrs = {"kernel", "stride", "padding",
                                                                  "dilation", "ceil_mode"};

struct PoolGeometry {
  int64_t batch = 0;
  int64_t channels = 0;
  Window2d window;

  int64_t planes() const { return batch * channels; }
  int64_t kernel_taps() const { return window.y.kernel * window.x.kernel; }
  Dims output_dims() const { return {batch, channels, window.y.output, window.x.output}; }
  // Pairs of an output and a tap of its window inside x, over all planes.
  int64_t TapsInside() const { return planes() * window.TapsInside(); }
};

// Checks the attributes `kernel`, `stride`, `padding`, `dilation` and `ceil_mode` against x.
Result<PoolGeometry> MakePoolGeometry(const OpCall& call, const Dims& x);

// Of a call that passed its type check: a pool, or a pool's gradient with `input_dims`.
PoolGeometry PoolGeometryOf(const OpCall& call);

// The dtype of max_pool's index: u8 while every tap number fits, else i32.
DType PoolIndexDType(const PoolGeometry& g);

// What avg_pool divides the sum of one window by; at least 1.
int64_t AvgPoolDivisor(const OpCall& call, const PoolGeometry& g, int64_t oy, int64_t ox);

// What every pool declares; `kernel` and `stride` must be given.
AttrMap PoolAttrDefaults();

// Calls visit(y_index, oy, ox, plane) for every output, in row-major order.
template <typename Visit>
void ForEachPoolOutput(const PoolGeometry& g, Visit visit) {
  int64_t y_index = 0;
  for (int64_t plane = 0; plane < g.planes(); ++plane) {
    for (int64_t oy = 0; oy < g.window.y.output; ++oy) {
      for (int64_t ox = 0; ox < g.window.x.output; ++ox) visit(y_index++, oy, ox, plane);
    }
  }
}

// Calls visit(x_index, tap) for the taps of one output inside x, in order of the tap number.
template <typename Visit>
void ForEachPoolTap(const PoolGeometry& g, int64_t plane, int64_t oy, int64_t ox, Visit visit) {
  const WindowAxis &wy = g.window.y, &wx = g.window.x;
  for (int64_t ky = 0; ky < wy.kernel; ++ky) {
    const int64_t y = wy.InputAt(oy, ky);
    if (!wy.Inside(y)) continue;
    for (int64_t kx = 0; kx < wx.kernel; ++kx) {
      const int64_t x = wx.InputAt(ox, kx);
      if (wx.Inside(x)) visit((plane * wy.input + y) * wx.input + x, ky * wx.kernel + kx);
    }
  }
}

}  // namespace ridge
