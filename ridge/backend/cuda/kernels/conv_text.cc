#include "ridge/backend/cuda/kernels/conv_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace ridge::cuda {
namespace {

// Part d of a number that counts over three extents, of which the first is not needed.
std::string Digit(const std::string& number, const std::array<int64_t, 3>& extents, size_t d) {
  int64_t inner = 1;
  for (size_t k = d + 1; k < 3; ++k) inner *= extents[k];
  const std::string high =
      inner == 1 ? number : fmt::format("{} / {}", number, std::max<int64_t>(inner, 1));
  return d == 0 ? high : fmt::format("({}) % {}", high, std::max<int64_t>(extents[d], 1));
}

template <typename F>
std::array<int64_t, 3> Extents(const SlidingWindow& window, F extent) {
  return {extent(window.axes[0]), extent(window.axes[1]), extent(window.axes[2])};
}

// "(p0 * H + p1) * W + p2"
std::string PlaceText(const std::array<int64_t, 3>& extents) {
  return fmt::format("  const Index at = (p0 * {} + p1) * {} + p2;\n", extents[1], extents[2]);
}

// The window of an axis that x does not have.
bool IsTrivial(const WindowAxis& axis) {
  return axis.input == 1 && axis.output == 1 && axis.kernel == 1 && axis.pad_begin == 0;
}

struct AxisExtents {
  std::array<int64_t, 3> inputs, outputs, kernels;
  explicit AxisExtents(const SlidingWindow& window)
      : inputs(Extents(window, [](const WindowAxis& axis) { return axis.input; })),
        outputs(Extents(window, [](const WindowAxis& axis) { return axis.output; })),
        kernels(Extents(window, [](const WindowAxis& axis) { return axis.kernel; })) {}
};

}  // namespace

std::string TapText(const SlidingWindow& window, const std::string& output,
                    const std::string& tap) {
  const AxisExtents e(window);
  std::string text;
  for (size_t d = 0; d < 3; ++d) {
    const WindowAxis& axis = window.axes[d];
    if (IsTrivial(axis)) {
      text += fmt::format("  const Index p{} = 0;\n", d);
      continue;
    }
    text += fmt::format("  const Index p{0} = ({1}) * {2} - {3} + ({4}) * {5};\n", d,
                        Digit(output, e.outputs, d), axis.stride, axis.pad_begin,
                        Digit(tap, e.kernels, d), axis.dilation);
    text += fmt::format("  if (p{0} < 0 || p{0} >= {1}) return R(0);\n", d, axis.input);
  }
  return text + PlaceText(e.inputs);
}

std::string OutputText(const SlidingWindow& window, const std::string& input,
                       const std::string& tap) {
  const AxisExtents e(window);
  std::string text;
  for (size_t d = 0; d < 3; ++d) {
    const WindowAxis& axis = window.axes[d];
    if (IsTrivial(axis)) {
      text += fmt::format("  const Index p{} = 0;\n", d);
      continue;
    }
    text += fmt::format("  const Index q{0} = ({1}) + {2} - ({3}) * {4}, p{0} = q{0} / {5};\n", d,
                        Digit(input, e.inputs, d), axis.pad_begin, Digit(tap, e.kernels, d),
                        axis.dilation, axis.stride);
    text += fmt::format("  if (q{0} < 0 || q{0} % {1} != 0 || p{0} >= {2}) return R(0);\n", d,
                        axis.stride, axis.output);
  }
  return text + PlaceText(e.outputs);
}

int64_t LargestPosition(const SlidingWindow& window) {
  int64_t largest = 0;
  for (const WindowAxis& axis : window.axes)
    largest = std::max(largest, 2 * (axis.input + axis.pad_begin + axis.pad_end + axis.span()));
  return largest;
}

}  // namespace ridge::cuda
