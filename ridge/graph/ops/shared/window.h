// Sliding windows over the last two dimensions of x [B, C, H, W]: what conv2d and the pools share.
//
// Along one axis, output o sees the input through `kernel` taps; tap k lies at
// o * stride - pad_begin + k * dilation, and counts when that is inside [0, input).
#pragma once
#include "ridge/graph/op_def.h"

namespace ridge {

// No stride, padding, dilation or kernel is larger; sums of them cannot overflow.
inline constexpr int64_t kMaxWindow = int64_t{1} << 20;

struct OutputRange {
  int64_t first = 0, last = 0;  // [first, last); empty when first >= last
};

struct WindowAxis {
  int64_t input = 0;
  int64_t output = 0;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_begin = 0;
  int64_t pad_end = 0;

  int64_t span() const { return (kernel - 1) * dilation + 1; }  // from the first tap to the last
  int64_t InputAt(int64_t o, int64_t tap) const { return o * stride - pad_begin + tap * dilation; }
  bool Inside(int64_t position) const { return position >= 0 && position < input; }
  // The outputs for which this tap is inside the input.
  OutputRange OutputsOfTap(int64_t tap) const;
  // Taps of output o inside the input, or inside the input with its padding.
  int64_t TapsOfOutput(int64_t o, bool with_padding) const;
  // Pairs (output, tap) inside the input.  Takes time in `kernel`, not in `output`.
  int64_t TapsInside() const;
};

struct Window2d {
  WindowAxis y, x;
  int64_t TapsInside() const { return y.TapsInside() * x.TapsInside(); }
};

// The window of a call over inputs of height x height `h` and width `w`, from the attributes
// `stride` [2], `padding` [4] (top, left, bottom, right) and `dilation` [2].
// Outputs: floor((input + padding - span) / stride) + 1.  With `ceil_mode` the division rounds up,
// but the last window must start inside the input or its first padding, as in PyTorch.
Result<Window2d> MakeWindow(const OpCall& call, int64_t h, int64_t w, int64_t kernel_h,
                            int64_t kernel_w, bool ceil_mode);

}  // namespace ridge
