#include "ridge/graph/ops/shared/window.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/graph/ops/shared/checks.h"

namespace ridge {
namespace {

// REQUIRES: b > 0.
int64_t FloorDivide(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
int64_t CeilDivide(int64_t a, int64_t b) { return -FloorDivide(-a, b); }

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
  int64_t taps = 0;
  for (int64_t k = 0; k < kernel; ++k) taps += InputAt(o, k) >= low && InputAt(o, k) < high;
  return taps;
}

int64_t WindowAxis::TapsInside() const {
  int64_t taps = 0;
  for (int64_t k = 0; k < kernel; ++k) {
    const OutputRange range = OutputsOfTap(k);
    taps += std::max<int64_t>(0, range.last - range.first);
  }
  return taps;
}

Result<Window2d> MakeWindow(const OpCall& call, int64_t h, int64_t w, int64_t kernel_h,
                            int64_t kernel_w, bool ceil_mode) {
  RIDGE_RETURN_IF_ERROR(CheckIntegers(call, "stride", 2, 1, kMaxWindow));
  RIDGE_RETURN_IF_ERROR(CheckIntegers(call, "padding", 4, 0, kMaxWindow));
  RIDGE_RETURN_IF_ERROR(CheckIntegers(call, "dilation", 2, 1, kMaxWindow));
  const auto &stride = call.integers("stride"), &padding = call.integers("padding"),
             &dilation = call.integers("dilation");
  Window2d window;
  window.y = {.input = h,
              .kernel = kernel_h,
              .stride = stride[0],
              .dilation = dilation[0],
              .pad_begin = padding[0],
              .pad_end = padding[2]};
  window.x = {.input = w,
              .kernel = kernel_w,
              .stride = stride[1],
              .dilation = dilation[1],
              .pad_begin = padding[1],
              .pad_end = padding[3]};
  RIDGE_RETURN_IF_ERROR(SetOutput(call, "rows", ceil_mode, window.y));
  RIDGE_RETURN_IF_ERROR(SetOutput(call, "columns", ceil_mode, window.x));
  return window;
}

}  // namespace ridge
