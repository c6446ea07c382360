// Sliding windows over the 1 to 3 spatial dimensions of x [B, C, (D, (H,)) W]: what conv and the
// pools share.  Everything is held as depth, height and width; those that x lacks have extent 1.
//
// Along one axis, output o sees the input through `kernel` taps; tap k lies at
// o * stride - pad_begin + k * dilation, and counts when that is inside [0, input).
#pragma once
#include <array>
#include <span>

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

  // Three taps side by side that move by one: what Winograd's F(m, 3) computes.
  bool IsWinograd() const { return kernel == 3 && stride == 1 && dilation == 1; }
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

struct SlidingWindow {
  std::array<WindowAxis, 3> axes;  // depth, height, width; the last `rank` are those of x
  int rank = 2;

  const WindowAxis& z() const { return axes[0]; }
  const WindowAxis& y() const { return axes[1]; }
  const WindowAxis& x() const { return axes[2]; }
  std::span<const WindowAxis> own() const {
    return std::span(axes).last(static_cast<size_t>(rank));
  }

  int64_t inputs() const { return z().input * y().input * x().input; }  // of one plane
  int64_t outputs() const { return z().output * y().output * x().output; }
  int64_t taps() const { return z().kernel * y().kernel * x().kernel; }
  int64_t InputIndex(int64_t iz, int64_t iy, int64_t ix) const {
    return (iz * y().input + iy) * x().input + ix;
  }
  int64_t TapsInside() const;  // the largest number instead of more
  void AppendOutputs(Dims& dims) const;
};

// The window of a call over the spatial extents `input`, from the attributes `stride` and
// `dilation` (one number a dimension; empty: ones) and `padding` (before each dimension, then after
// each; empty: zeros).
// Outputs: floor((input + padding - span) / stride) + 1.  With `ceil_mode` the division rounds up,
// but the last window must start inside the input or its first padding, as in PyTorch and ONNX.
// REQUIRES: 1 to 3 extents, as many of `kernel`.
Result<SlidingWindow> MakeWindow(const OpCall& call, std::span<const int64_t> input,
                                 std::span<const int64_t> kernel, bool ceil_mode);

// x is [batch, channels, 1 to 3 spatial dimensions].
Status CheckSpatialRank(const OpCall& call, const Dims& x);

// A product of extents, or the largest number.
int64_t SaturatedProduct(std::initializer_list<int64_t> factors);

}  // namespace ridge
