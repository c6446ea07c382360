// The geometry of the pools over x [B, C, (D, (H,)) W] and their gradients.
#pragma once
#include <initializer_list>

#include "ridge/graph/ops/shared/window.h"

namespace ridge {

inline constexpr std::initializer_list<const char*> kPoolAttrs = {"kernel", "stride", "padding",
                                                                  "dilation", "ceil_mode"};

struct PoolGeometry {
  int64_t batch = 0;
  int64_t channels = 0;
  SlidingWindow window;

  int64_t planes() const { return batch * channels; }
  Dims output_dims() const;
  // Pairs of an output and a tap of its window inside x, over all planes.
  int64_t TapsInside() const { return SaturatedProduct({planes(), window.TapsInside()}); }
};

// Checks the attributes `kernel`, `stride`, `padding`, `dilation` and `ceil_mode` against x.
Result<PoolGeometry> MakePoolGeometry(const OpCall& call, const Dims& x);

// Of a call that passed its type check: a pool, or a pool's gradient with `input_dims`.
PoolGeometry PoolGeometryOf(const OpCall& call);

// The dtype of max_pool's index: u8 while every tap number fits, else i32.
DType PoolIndexDType(const PoolGeometry& g);

// What avg_pool divides the sum of one window by; at least 1.
int64_t AvgPoolDivisor(const OpCall& call, const SlidingWindow& window, int64_t oz, int64_t oy,
                       int64_t ox);

// What every pool declares; `kernel` must be given.
AttrMap PoolAttrDefaults();

// One output: its place in y and in its plane.
struct PoolOutput {
  int64_t at, plane, z, y, x;
};

// Calls visit(output) for every output, in row-major order.
template <typename Visit>
void ForEachPoolOutput(const PoolGeometry& g, const Visit& visit) {
  int64_t at = 0;
  for (int64_t plane = 0; plane < g.planes(); ++plane) {
    for (int64_t oz = 0; oz < g.window.z().output; ++oz) {
      for (int64_t oy = 0; oy < g.window.y().output; ++oy) {
        for (int64_t ox = 0; ox < g.window.x().output; ++ox)
          visit(PoolOutput{at++, plane, oz, oy, ox});
      }
    }
  }
}

// Calls visit(position in the plane, tap) for the taps of one output inside x, in order of the tap
// number.
template <typename Visit>
void ForEachPoolTap(const SlidingWindow& window, const PoolOutput& o, const Visit& visit) {
  const WindowAxis &wz = window.z(), &wy = window.y(), &wx = window.x();
  for (int64_t kz = 0; kz < wz.kernel; ++kz) {
    const int64_t z = wz.InputAt(o.z, kz);
    if (!wz.Inside(z)) continue;
    for (int64_t ky = 0; ky < wy.kernel; ++ky) {
      const int64_t y = wy.InputAt(o.y, ky);
      if (!wy.Inside(y)) continue;
      for (int64_t kx = 0; kx < wx.kernel; ++kx) {
        const int64_t x = wx.InputAt(o.x, kx);
        if (wx.Inside(x)) visit(window.InputIndex(z, y, x), (kz * wy.kernel + ky) * wx.kernel + kx);
      }
    }
  }
}

}  // namespace ridge
