// The geometry of conv and its two gradients: one loop serves all three references.
//
// x [B, C, H, W], w [O, C / groups, KH, KW], y [B, O, OH, OW], or with one spatial dimension less
// or more; output channel o belongs to group
// o / (O / groups) and reads the C / groups input channels of that group.
#pragma once
#include <initializer_list>

#include "ridge/graph/ops/shared/window.h"

namespace ridge {

// Attributes that every convolution carries.
inline constexpr std::initializer_list<const char*> kConvAttrs = {"stride", "padding", "dilation",
                                                                  "groups", "keep_f32"};

struct ConvGeometry {
  int64_t batch = 0;
  int64_t groups = 1;
  int64_t group_inputs = 0;   // input channels of a group
  int64_t group_outputs = 0;  // output channels of a group
  SlidingWindow window;

  int64_t inputs() const { return groups * group_inputs; }
  int64_t outputs() const { return groups * group_outputs; }
  Dims output_dims() const;
  // Multiply-adds count 2; taps in the padding do not count.
  int64_t flops() const {
    return SaturatedProduct({2, batch, outputs(), group_inputs, window.TapsInside()});
  }
};

// Checks attributes and extents of a convolution of x by w; also used for the gradients, where one
// of the two is given as an attribute.
Result<ConvGeometry> MakeConvGeometry(const OpCall& call, const Dims& x, const Dims& w);

// Of a call that passed its type check.
ConvGeometry ConvGeometryOf(const OpCall& call);
ConvGeometry GradInputGeometryOf(const OpCall& call);
ConvGeometry GradWeightGeometryOf(const OpCall& call);

// A run of outputs along one row, all seen through the same weight:
// y[y + i] pairs with x[x + i * x_step] and w[w], for i in [0, count).
struct ConvRow {
  int64_t x, w, y, count, x_step;
};

// Calls visit(row) for every run of one tap (kz, ky, kx) in one plane of x, w and y.
template <typename Visit>
void ForEachConvRowOfTap(const SlidingWindow& window, const ConvRow& planes, int64_t kz, int64_t ky,
                         int64_t kx, const Visit& visit) {
  const WindowAxis &wz = window.z(), &wy = window.y(), &wx = window.x();
  const OutputRange slices = wz.OutputsOfTap(kz), rows = wy.OutputsOfTap(ky),
                    columns = wx.OutputsOfTap(kx);
  if (columns.first >= columns.last) return;
  for (int64_t oz = slices.first; oz < slices.last; ++oz) {
    for (int64_t oy = rows.first; oy < rows.last; ++oy) {
      visit(ConvRow{
          .x =
              planes.x * window.inputs() + window.InputIndex(wz.InputAt(oz, kz), wy.InputAt(oy, ky),
                                                             wx.InputAt(columns.first, kx)),
          .w = planes.w * window.taps() + (kz * wy.kernel + ky) * wx.kernel + kx,
          .y = planes.y * window.outputs() + (oz * wy.output + oy) * wx.output + columns.first,
          .count = columns.last - columns.first,
          .x_step = wx.stride});
    }
  }
}

// Calls visit(row) for every run whose taps are inside the input, in one fixed order.
template <typename Visit>
void ForEachConvRow(const ConvGeometry& g, const Visit& visit) {
  const WindowAxis &wy = g.window.y(), &wx = g.window.x();
  for (int64_t plane = 0; plane < g.batch * g.outputs(); ++plane) {
    const int64_t b = plane / g.outputs(), o = plane % g.outputs();
    const int64_t first_input = b * g.inputs() + o / g.group_outputs * g.group_inputs;
    for (int64_t c = 0; c < g.group_inputs; ++c) {
      const ConvRow planes{
          .x = first_input + c, .w = o * g.group_inputs + c, .y = plane, .count = 0, .x_step = 0};
      for (int64_t tap = 0; tap < g.window.taps(); ++tap) {
        ForEachConvRowOfTap(g.window, planes, tap / (wy.kernel * wx.kernel),
                            tap / wx.kernel % wy.kernel, tap % wx.kernel, visit);
      }
    }
  }
}

}  // namespace ridge
