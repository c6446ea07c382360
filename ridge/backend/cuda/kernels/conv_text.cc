#include "ridge/backend/cuda/kernels/conv_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/core/rounding.h"

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

// Whether every output sees the input in its own place, and no other.
bool IsPlain(const SlidingWindow& window) {
  return std::all_of(window.axes.begin(), window.axes.end(), [](const WindowAxis& axis) {
    return axis.kernel == 1 && axis.stride == 1 && axis.pad_begin == 0 && axis.pad_end == 0;
  });
}

// Returns R(0) where position p of axis d is outside; nothing where it can't be.
std::string GuardText(const WindowAxis& axis, size_t d) {
  const bool below = axis.pad_begin > 0;
  const bool above = axis.InputAt(axis.output - 1, axis.kernel - 1) >= axis.input;
  if (!below && !above) return "";
  return fmt::format("  if ({}{}{}) return R(0);\n", below ? fmt::format("p{} < 0", d) : "",
                     below && above ? " || " : "",
                     above ? fmt::format("p{} >= {}", d, axis.input) : "");
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
  if (IsPlain(window)) return fmt::format("  const Index at = {};\n", output);
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
    text += GuardText(axis, d);
  }
  return text + PlaceText(e.inputs);
}

namespace {

// More would leave too little work to each.
constexpr int64_t kMostPhases = 8;

bool HasPhases(const WindowAxis& axis) {
  return axis.stride > 1 && axis.stride <= std::min(kMostPhases, axis.input) && axis.dilation == 1;
}

// "t0", the tap of w along axis d.
std::string AxisTapText(const WindowAxis& axis, const InputPhases& p, size_t d) {
  const std::string tap = Digit("tap", p.taps, d);
  if (!HasPhases(axis)) return fmt::format("  const Index t{} = {};\n", d, tap);
  return fmt::format("  const Index t{0} = ({1}) * {2} + {3};\n  if (t{0} >= {4}) return R(0);\n",
                     d, tap, axis.stride, Digit("phase", p.phases, d), axis.kernel);
}

// "p0", the position along axis d.
std::string AxisInputText(const WindowAxis& axis, const InputPhases& p, size_t d) {
  const std::string pixel = Digit("pixel", p.positions, d);
  if (!HasPhases(axis)) return fmt::format("  const Index p{} = {};\n", d, pixel);
  return fmt::format("  const Index p{} = ({}) * {} + {} - {};\n", d, pixel, axis.stride,
                     Digit("phase", p.phases, d), axis.pad_begin % axis.stride);
}

// "p0", the output along axis d that sees the pixel through the tap.
std::string AxisOutputText(const WindowAxis& axis, const InputPhases& p, size_t d) {
  const std::string pixel = Digit("pixel", p.positions, d), tap = Digit("tap", p.taps, d);
  if (HasPhases(axis)) {
    // A tap that w does not have has no output either: 0 times infinity would be NaN.
    return AxisTapText(axis, p, d) + fmt::format(
                                         "  const Index p{0} = ({1}) + {2} - ({3});\n"
                                         "  if (p{0} < 0 || p{0} >= {4}) return R(0);\n",
                                         d, pixel, axis.pad_begin / axis.stride, tap, axis.output);
  }
  return fmt::format(
      "  const Index q{0} = ({1}) + {2} - ({3}) * {4}, p{0} = q{0} / {5};\n"
      "  if (q{0} < 0 || q{0} % {5} != 0 || p{0} >= {6}) return R(0);\n",
      d, pixel, axis.pad_begin, tap, axis.dilation, axis.stride, axis.output);
}

}  // namespace

InputPhases::InputPhases(const SlidingWindow& window) {
  for (size_t d = 0; d < 3; ++d) {
    const WindowAxis& axis = window.axes[d];
    const bool split = HasPhases(axis);
    const int64_t first = axis.pad_begin % axis.stride;  // before position 0
    phases[d] = split ? axis.stride : 1;
    positions[d] = split ? CeilDiv(axis.input + first, axis.stride) : axis.input;
    taps[d] = split ? CeilDiv(axis.kernel, axis.stride) : axis.kernel;
  }
}

std::string PhaseTapText(const SlidingWindow& window) {
  const InputPhases p(window);
  const AxisExtents e(window);
  std::string text;
  for (size_t d = 0; d < 3; ++d) text += AxisTapText(window.axes[d], p, d);
  return text +
         fmt::format("  const Index at = (t0 * {} + t1) * {} + t2;\n", e.kernels[1], e.kernels[2]);
}

std::string PhaseOutputText(const SlidingWindow& window) {
  if (IsPlain(window)) return "  const Index at = pixel;\n";
  const InputPhases p(window);
  std::string text;
  for (size_t d = 0; d < 3; ++d) {
    text += IsTrivial(window.axes[d]) ? fmt::format("  const Index p{} = 0;\n", d)
                                      : AxisOutputText(window.axes[d], p, d);
  }
  return text + PlaceText(AxisExtents(window).outputs);
}

std::string PhaseInputText(const SlidingWindow& window) {
  if (IsPlain(window)) return "  const Index at = pixel;\n  const bool inside = true;\n";
  const InputPhases p(window);
  const AxisExtents e(window);
  std::string text, inside = "true";
  for (size_t d = 0; d < 3; ++d) {
    text += AxisInputText(window.axes[d], p, d);
    if (HasPhases(window.axes[d]))
      inside += fmt::format(" && p{0} >= 0 && p{0} < {1}", d, e.inputs[d]);
  }
  return text + PlaceText(e.inputs) + fmt::format("  const bool inside = {};\n", inside);
}

int64_t LargestPosition(const SlidingWindow& window) {
  int64_t largest = 0;
  for (const WindowAxis& axis : window.axes)
    largest = std::max(largest, 2 * (axis.input + axis.pad_begin + axis.pad_end + axis.span()));
  return largest;
}

}  // namespace ridge::cuda
