#include "ridge/graph/ops/shared/window.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ridge/graph/ops/shared/checks.h"

namespace ridge {
namespace {

// REQUIRES: b > 0.
int64_t FloorDivide(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
int64_t CeilDivide(int64_t a, int64_t b) { return -FloorDivide(-a, b); }

// The list is empty, or has `count` integers from `min` on.
Status CheckList(const OpCall& call, const char* name, size_t count, int64_t min) {
  if (call.integers(name).empty()) return Status();
  return CheckIntegers(call, name, count, min, kMaxWindow);
}

int64_t Entry(const OpCall& call, const char* name, size_t at, int64_t fallback) {
  const std::vector<int64_t>& list = call.integers(name);
  return list.empty() ? fallback : list[at];
}

Status SetOutput(const OpCall& call, const char* what, bool ceil_mode, WindowAxis& axis) {
  const int64_t padded = axis.input + axis.pad_begin + axis.pad_end;
  if (axis.input == 0) return Status();  // no input, no output
  if (padded < axis.span()) {
    return CallError(call, fmt::format("the window spans {} {} (kernel {}, dilation {}) but x has "
                                       "{} with its padding; hint: pad x or take a smaller kernel",
                                       axis.span(), what, axis.kernel, axis.dilation, padded));
  }
  const int64_t room = padded - axis.span();
  axis.output = (ceil_mode ? CeilDivide(room, axis.stride) : room / axis.stride) + 1;
  if (ceil_mode && (axis.output - 1) * axis.stride >= axis.input + axis.pad_begin) --axis.output;
  return Status();
}

}  // namespace

OutputRange WindowAxis::OutputsOfTap(int64_t tap) const {
  const int64_t shift = pad_begin - tap * dilation;  // 0 <= o * stride - shift < input
  OutputRange range;
  range.first = std::max<int64_t>(0, CeilDivide(shift, stride));
  range.last = std::min(output, FloorDivide(input - 1 + shift, stride) + 1);
  return range;
}

int64_t WindowAxis::TapsOfOutput(int64_t o, bool with_padding) const {
  const int64_t low = with_padding ? -pad_begin : 0;
  const int64_t high = with_padding ? input + pad_end : input;
  const int64_t first = std::max<int64_t>(0, CeilDivide(low - InputAt(o, 0), dilation));
  const int64_t last = std::min(kernel, CeilDivide(high - InputAt(o, 0), dilation));
  return std::max<int64_t>(0, last - first);
}

int64_t WindowAxis::TapsInside() const {
  int64_t taps = 0;
  for (int64_t k = 0; k < kernel; ++k) {
    const OutputRange range = OutputsOfTap(k);
    taps += std::max<int64_t>(0, range.last - range.first);
  }
  return taps;
}

int64_t SlidingWindow::TapsInside() const {
  return SaturatedProduct({z().TapsInside(), y().TapsInside(), x().TapsInside()});
}

void SlidingWindow::AppendOutputs(Dims& dims) const {
  for (const WindowAxis& axis : own()) dims.push_back(axis.output);
}

Result<SlidingWindow> MakeWindow(const OpCall& call, std::span<const int64_t> input,
                                 std::span<const int64_t> kernel, bool ceil_mode) {
  static constexpr const char* kPositions[3] = {"slices", "rows", "columns"};
  const size_t rank = input.size();
  RIDGE_RETURN_IF_ERROR(CheckList(call, "stride", rank, 1));
  RIDGE_RETURN_IF_ERROR(CheckList(call, "padding", 2 * rank, 0));
  RIDGE_RETURN_IF_ERROR(CheckList(call, "dilation", rank, 1));
  SlidingWindow window;
  window.rank = static_cast<int>(rank);
  for (WindowAxis& axis : window.axes) axis.input = axis.output = 1;
  for (size_t d = 0; d < rank; ++d) {
    WindowAxis& axis = window.axes[3 - rank + d];
    axis = {.input = input[d],
            .kernel = kernel[d],
            .stride = Entry(call, "stride", d, 1),
            .dilation = Entry(call, "dilation", d, 1),
            .pad_begin = Entry(call, "padding", d, 0),
            .pad_end = Entry(call, "padding", rank + d, 0)};
    RIDGE_RETURN_IF_ERROR(SetOutput(call, kPositions[3 - rank + d], ceil_mode, axis));
  }
  return window;
}

Status CheckSpatialRank(const OpCall& call, const Dims& x) {
  if (x.size() >= 3 && x.size() <= 5) return Status();
  return CallError(call, fmt::format("x has shape {}; it must have 3 to 5 dimensions, [batch, "
                                     "channels, (depth, (height,)) width]",
                                     DimsToString(x)));
}

int64_t SaturatedProduct(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  bool overflow = false;
  for (const int64_t factor : factors) {
    if (factor == 0) return 0;
    overflow = __builtin_mul_overflow(product, factor, &product) || overflow;
  }
  return overflow ? std::numeric_limits<int64_t>::max() : product;
}

}  // namespace ridge
