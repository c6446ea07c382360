#include "ridge/onnx/import/converters/image_sample.h"

#include "ridge/graph/ops/shared/reduce.h"

namespace ridge {
namespace {

constexpr double kCubicA = -0.75;

// A whole place along one axis, in [0, extent), and its weight.
struct Tap {
  Value place;   // i64, S
  Value weight;  // float, S; invalid: 1
};

struct Axis {
  GraphBuilder& b;
  double extent;
  SamplePadding padding;
  double low, high;  // where the image ends
};

// v mirrored at both ends as often as it takes: a wave of period 2 * (high - low).
Value Reflect(const Axis& axis, Value v) {
  const double range = axis.high - axis.low;
  if (range <= 0) return v * 0;
  const Value from = v + -axis.low;
  const Value periods = Floor(from * (0.5 / range));
  const Value phase = from - periods * (2 * range);
  const Value distance = Abs(phase + -range);  // from the high end
  return -distance + (axis.low + range);
}

// The point itself is brought into the image only where it is beyond its ends.
Value PadPoint(const Axis& axis, Value v) {
  if (axis.padding == SamplePadding::kBorder) return Clip(v, 0, axis.extent - 1);
  if (axis.padding == SamplePadding::kReflection) return Reflect(axis, v);
  return v;
}

// `place` is whole.
Tap TapAt(const Axis& axis, Value place, Value weight) {
  const DType dtype = place.dtype();
  if (axis.padding == SamplePadding::kReflection) place = Reflect(axis, place);
  if (axis.padding == SamplePadding::kZeros) {
    const Value after_first = place >= 0, before_last = place <= axis.extent - 1;
    const Value inside = And(after_first, before_last);
    const Value mask = Cast(inside, dtype);
    weight = weight.valid() ? weight * mask : mask;
  }
  return {Cast(Clip(place, 0, axis.extent - 1), DType::kI64), weight};
}

// Of a place at distance t in [0, 1] and one at t in [1, 2], by Keys with a = -0.75.
Value NearCubic(Value t) {
  const Value inner = t * (kCubicA + 2) + -(kCubicA + 3);
  return inner * t * t + 1;
}
Value FarCubic(Value t) {
  Value sum = t * kCubicA + (-5 * kCubicA);
  sum = sum * t + 8 * kCubicA;
  return sum * t + (-4 * kCubicA);
}

std::vector<Tap> TapsOf(const Axis& axis, Value point, SampleMode mode) {
  if (mode == SampleMode::kNearest) return {TapAt(axis, PadPoint(axis, Round(point)), {})};
  // A cubic beside the border bends towards the pixels behind it, so its taps are clipped alone.
  const bool taps_alone = mode == SampleMode::kCubic && axis.padding == SamplePadding::kBorder;
  const Value v = taps_alone ? point : PadPoint(axis, point);
  const Value low = Floor(v);
  const Value t = v - low, rest = -t + 1;
  const Value next = low + 1;
  if (mode == SampleMode::kLinear) return {TapAt(axis, low, rest), TapAt(axis, next, t)};
  const Value first = FarCubic(t + 1);
  const Tap before = TapAt(axis, low + -1, first);
  const Tap at_low = TapAt(axis, low, NearCubic(t)), at_next = TapAt(axis, next, NearCubic(rest));
  const Value last = FarCubic(rest + 1);
  return {before, at_low, at_next, TapAt(axis, low + 2, last)};
}

// Adds to `sum` the taps of axes d and after, over what the axes before have chosen: `row` of the
// image so far, and the product of their weights.
Value AddTaps(GraphBuilder& b, const SampledImages& images,
              const std::vector<std::vector<Tap>>& taps, size_t d, Value row, Value weight,
              Value sum) {
  if (!b.ok()) return {};
  if (d == taps.size()) {
    Value sample = Gather(images.rows, row + images.first);
    if (!b.ok()) return {};
    if (weight.valid()) {
      Dims wide = weight.dims();
      wide.push_back(1);
      const Value factor = Cast(ReshapeExactly(weight, wide), sample.dtype());
      sample = sample * factor;
    }
    return sum.valid() ? sum + sample : sample;
  }
  for (const Tap& tap : taps[d]) {
    const Value at =
        row.valid()
            ? row * b.Scalar(DType::kI64, static_cast<double>(images.extents[d])) + tap.place
            : tap.place;
    Value product = tap.weight;
    if (weight.valid()) product = product.valid() ? weight * product : weight;
    sum = AddTaps(b, images, taps, d + 1, at, product, sum);
  }
  return sum;
}

}  // namespace

Value SampleImages(GraphBuilder& b, const SampledImages& images, const std::vector<Value>& points,
                   SampleMode mode, SamplePadding padding, bool align_corners) {
  std::vector<std::vector<Tap>> taps;
  for (size_t d = 0; d < points.size() && b.ok(); ++d) {
    const auto extent = static_cast<double>(images.extents[d]);
    const double beyond = align_corners ? 0 : 0.5;
    const Axis axis{b, extent, padding, -beyond, extent - 1 + beyond};
    taps.push_back(TapsOf(axis, points[d], mode));
  }
  return AddTaps(b, images, taps, 0, {}, {}, {});
}

}  // namespace ridge
