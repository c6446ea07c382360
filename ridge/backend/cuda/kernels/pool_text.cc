#include "ridge/backend/cuda/kernels/pool_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/backend/cuda/kernel_text.h"
#include "ridge/backend/cuda/kernels/index_text.h"

namespace ridge::cuda {
namespace {

constexpr std::string_view kAxisText = R"cuda(
typedef $Index Index;
template <Index input, Index output, Index kernel, Index stride, Index dilation, Index pad, Index counted_begin, Index counted_end>
struct Axis {
  static constexpr Index kInput = input, kOutput = output, kKernel = kernel;
  static RIDGE_FUNCTION Index At(Index o, Index k) { return o * stride - pad + k * dilation; }
  static RIDGE_FUNCTION Index FirstTapFrom(Index o, Index begin) {
    const Index missing = begin - At(o, 0);
    return missing > 0 ? (missing + dilation - 1) / dilation : 0;
  }
  static RIDGE_FUNCTION Index EndTapBefore(Index o, Index end) {
    const Index taps = end > At(o, 0) ? (end - At(o, 0) + dilation - 1) / dilation : 0;
    return taps < kernel ? taps : kernel;
  }
  static RIDGE_FUNCTION Index FirstTap(Index o) { return FirstTapFrom(o, 0); }
  static RIDGE_FUNCTION Index EndTap(Index o) { return EndTapBefore(o, input); }
  static RIDGE_FUNCTION Index Taps(Index o) {
    const Index taps = EndTapBefore(o, counted_end) - FirstTapFrom(o, counted_begin);
    return taps > 0 ? taps : 0;
  }
  static RIDGE_FUNCTION Index FirstOutput(Index i) {
    const Index before = i + pad - (kernel - 1) * dilation;
    return before > 0 ? (before + stride - 1) / stride : 0;
  }
  static RIDGE_FUNCTION Index EndOutput(Index i) {
    const Index end = (i + pad) / stride + 1;
    return end < output ? end : output;
  }
  static RIDGE_FUNCTION Index TapAt(Index o, Index i) {
    const Index distance = i - At(o, 0);
    return distance % dilation == 0 ? distance / dilation : -1;
  }
};
)cuda";

std::string AxisText(const char* name, const WindowAxis& axis, bool counts_padding) {
  const int64_t begin = counts_padding ? -axis.pad_begin : 0;
  const int64_t end = axis.input + (counts_padding ? axis.pad_end : 0);
  return fmt::format("typedef Axis<{}, {}, {}, {}, {}, {}, {}, {}> {};\n", axis.input, axis.output,
                     axis.kernel, axis.stride, axis.dilation, axis.pad_begin, begin, end, name);
}

}  // namespace

std::string PoolAxesText(const PoolGeometry& geometry, bool counts_padding) {
  const SlidingWindow& window = geometry.window;
  int64_t reach = geometry.planes() * std::max(window.inputs(), window.outputs());
  for (const WindowAxis& axis : window.axes)
    reach = std::max(reach, axis.input + 4 * kMaxWindow + axis.span());
  return FillText(kAxisText, {{"Index", IndexType(reach)}}) +
         AxisText("AxisZ", window.z(), counts_padding) +
         AxisText("AxisY", window.y(), counts_padding) +
         AxisText("AxisX", window.x(), counts_padding);
}

int64_t ChannelPack(int64_t channels, DType dtype) {
  constexpr int64_t kPackBytes = 16;
  int64_t pack = std::max<int64_t>(kPackBytes / BytesPerElement(dtype), 1);
  while (channels % pack != 0) pack /= 2;
  return pack;
}

}  // namespace ridge::cuda
