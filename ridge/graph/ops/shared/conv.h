// The geometry of conv2d and its two gradients: one loop serves all three references.
//
// x [B, C, H, W], w [O, C / groups, KH, KW], y [B, O, OH, OW]; output channel o belongs to group
// o / (O / groups) and reads the C / groups input channels of that group.
#pragma once
#include <initializer_list>

#include "ridge/graph/ops/shared/window.h"

namespace ridge {

// Attributes that every convolution carries.
inline constexpr std::initializer_list<const char*> kConvAttrs = {"stride", "padding", "dilation",
                                                                  "groups"};

struct ConvGeometry {
  int64_t batch = 0;
  int64_t groups = 1;
  int64_t group_inputs = 0;   // input channels of a group
  int64_t group_outputs = 0;  // output channels of a group
  Window2d window;

  int64_t inputs() const { return groups * group_inputs; }
  int64_t outputs() const { return groups * group_outputs; }
  Dims output_dims() const { return {batch, outputs(), window.y.output, window.x.output}; }
  // Multiply-adds count 2; taps in the padding do not count.
  int64_t flops() const { return 2 * batch * outputs() * group_inputs * window.TapsInside(); }
};

// Checks attributes and extents of a convolution of x by w; also used for the gradients, where one
// of the two is given as an attribute.
Result<ConvGeometry> MakeConvGeometry(const OpCall& call, const Dims& x, const Dims& w);

// Of a call that passed its type check.
ConvGeometry Conv2dGeometry(const OpCall& call);
ConvGeometry Conv2dGradInputGeometry(const OpCall& call);
ConvGeometry Conv2dGradWeightGeometry(const OpCall& call);

// A run of outputs along one row, all seen through the same weight:
// y[y + i] pairs with x[x + i * x_step] and w[w], for i in [0, count).
struct ConvRow {
  int64_t x, w, y, count, x_step;
};

// Calls visit(row) for every run whose taps are inside the input, in one fixed order.
template <typename Visit>
void ForEachConvRow(const ConvGeometry& g, Visit visit) {
  const WindowAxis &wy = g.window.y, &wx = g.window.x;
  // Planes: (image and input channel, weight plane, image and output channel).
  const auto planes = [&](int64_t x_plane, int64_t w_plane, int64_t y_plane) {
    for (int64_t ky = 0; ky < wy.kernel; ++ky) {
      for (int64_t kx = 0; kx < wx.kernel; ++kx) {
        const OutputRange rows = wy.OutputsOfTap(ky), columns = wx.OutputsOfTap(kx);
        if (columns.first >= columns.last) continue;
        for (int64_t oy = rows.first; oy < rows.last; ++oy) {
          visit(ConvRow{.x = (x_plane * wy.input + wy.InputAt(oy, ky)) * wx.input +
                             wx.InputAt(columns.first, kx),
                        .w = (w_plane * wy.kernel + ky) * wx.kernel + kx,
                        .y = (y_plane * wy.output + oy) * wx.output + columns.first,
                        .count = columns.last - columns.first,
                        .x_step = wx.stride});
        }
      }
    }
  };
  for (int64_t b = 0; b < g.batch; ++b) {
    for (int64_t o = 0; o < g.outputs(); ++o) {
      const int64_t first_input = o / g.group_outputs * g.group_inputs;
      for (int64_t c = 0; c < g.group_inputs; ++c) {
        planes(b * g.inputs() + first_input + c, o * g.group_inputs + c, b * g.outputs() + o);
      }
    }
  }
}

}  // namespace ridge
