// pad and slice_grad: y is filled with one value but where x lies in it, with a stride in each
// dimension.  A thread asks of each word of y where it comes from.
#include <fmt/format.h>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/cuda/kernels/move_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/graph/ops/shared/slice.h"

namespace ridge::cuda {
namespace {

constexpr std::string_view kPadText = R"cuda(
RIDGE_FUNCTION Word Padded(const Word* x, Index e) {
  bool inside = true;
  Index from = 0;
$places  Word word = $fill;
  if (inside) word = x[from];
  return word;
}
)cuda";

// Along one dimension: element i of x is element start + i * step of y.
struct Placing {
  int64_t extent;  // of y
  AxisSlice range;

  bool whole() const { return range.start == 0 && range.step == 1 && range.count == extent; }
};

std::vector<Placing> PlacingsOf(const OpDef& op, const OpCall& call) {
  const Dims &x = call.inputs[0].dims, &y = call.outputs[0].dims;
  std::vector<Placing> placings;
  if (op.name == "slice_grad") {
    const std::vector<AxisSlice> ranges = *AxisSlices(call, y);
    for (size_t d = 0; d < y.size(); ++d) placings.push_back({y[d], ranges[d]});
  } else {
    for (size_t d = 0; d < y.size(); ++d)
      placings.push_back({y[d], {call.integers("before")[d], 1, x[d]}});
  }
  return placings;
}

// A dimension that x fills belongs to the one before it.
std::vector<Placing> Merged(std::vector<Placing> placings) {
  for (size_t d = placings.size(); d-- > 1;) {
    Placing& outer = placings[d - 1];
    if (!placings[d].whole() || outer.range.step != 1) continue;
    const int64_t inner = placings[d].extent;
    outer = {outer.extent * inner, {outer.range.start * inner, 1, outer.range.count * inner}};
    placings.erase(placings.begin() + static_cast<std::ptrdiff_t>(d));
  }
  if (placings.empty()) placings.push_back({1, {0, 1, 1}});
  return placings;
}

// By words of `width` elements.
void Widen(std::vector<Placing>& placings, int64_t width) {
  Placing& last = placings.back();
  if (width > 1)
    last = {last.extent / width, {last.range.start / width, 1, last.range.count / width}};
}

// Sets `inside` and `from` along one dimension, from e / inner % extent.
std::string PlaceText(const Placing& p, int64_t inner, int64_t x_stride) {
  const AxisSlice& r = p.range;
  const int64_t step = r.step < 0 ? -r.step : r.step;
  std::string text = fmt::format("  {{\n    const Index i = e / {} % {};\n", inner, p.extent);
  text += r.step < 0 ? fmt::format("    const Index along = {} - i;\n", r.start)
                     : fmt::format("    const Index along = i - {};\n", r.start);
  text += fmt::format("    inside = inside && along >= 0 && along < {}", step * r.count);
  if (step != 1) text += fmt::format(" && along % {} == 0", step);
  return text + fmt::format(";\n    from += along / {} * {};\n  }}\n", step, x_stride);
}

const char* WritePlaced(const OpDef& op, const OpCall& call, std::vector<Placing> placings,
                        KernelText& text) {
  const TensorType &x = call.inputs[0], &y = call.outputs[0];
  placings = Merged(std::move(placings));
  const Placing& last = placings.back();
  const int64_t element = BytesPerElement(y.dtype);
  const int64_t bytes = last.range.step == 1
                            ? WordBytes(element, {last.extent, last.range.start, last.range.count})
                            : element;
  Widen(placings, bytes / element);
  std::string places;
  int64_t count = 1, x_stride = 1;
  for (size_t d = placings.size(); d-- > 0;) {
    places += PlaceText(placings[d], count, x_stride);
    count *= placings[d].extent;
    x_stride *= placings[d].range.count;
  }
  const double fill = op.name == "pad" ? call.number("value") : 0;
  text.source =
      MoveTypes(bytes, std::max(x.elements(), y.elements())) +
      FillText(kPadText, {{"places", places}, {"fill", WordLiteral(bytes, y.dtype, fill)}});
  AppendMove({.name = "pad",
              .parameters = "const Word* x",
              .arguments = {Argument::Input(0)},
              .value = "Padded(x, e)",
              .count = count},
             text);
  return nullptr;
}

const char* WritePad(const OpDef& op, const OpCall& call, KernelText& text) {
  return WritePlaced(op, call, PlacingsOf(op, call), text);
}

const char* WritePadChannelsLast(const OpDef& op, const OpCall& call, KernelText& text) {
  const TensorType& y = call.outputs[0];
  if (!HasLayouts(y)) return refusal::kLayout;
  const std::vector<Placing> placings = PlacingsOf(op, call);
  std::vector<Placing> stored;
  for (const size_t d : ChannelsLastOrder(y.rank())) stored.push_back(placings[d]);
  return WritePlaced(op, call, std::move(stored), text);
}

}  // namespace

TextKernelDef PadTextKernel() {
  return {.name = "cuda.pad",
          .ops = {"pad", "slice_grad"},
          .write = WritePad,
          .write_channels_last = WritePadChannelsLast};
}

}  // namespace ridge::cuda
