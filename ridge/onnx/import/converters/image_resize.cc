// Resize and Upsample: axis after axis, by a table of places and weights for each (linear in x).
//
// Nearest with a whole factor is a reshape and an expand; other copies are gathers, which keep any
// element type; the rest is `interpolate`, in f32 for integers, which are rounded at the end.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/onnx/import/converters/image.h"
#include "ridge/onnx/import/converters/image_resize_table.h"

namespace ridge {
namespace {

constexpr int64_t kMaxExtent = int64_t{1} << 20;

// What the inputs say of the axes; entries of axes that stay are absent.
struct ResizeRequest {
  std::vector<int64_t> axes;
  std::vector<double> scales;  // by axis; empty when sizes are given
  std::vector<int64_t> sizes;
  std::vector<double> roi;  // starts of all axes, then ends; or empty
};

Result<std::vector<double>> ReadNumbers(OnnxNode& n, size_t i, const char* what) {
  if (!n.has_input(i)) return std::vector<double>();
  return n.ConstantNumbers(i, what);
}

Result<std::vector<int64_t>> ReadAxes(OnnxNode& n) {
  std::vector<int64_t> axes = n.integers("axes");
  const int rank = n.type(0).rank();
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), int64_t{0});
  }
  std::vector<int64_t> sorted;
  for (int64_t& axis : axes) {
    RIDGE_ASSIGN_OR_RETURN(axis, n.Axis(axis, rank));
    sorted.push_back(axis);
  }
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end()) return axes;
  return n.Error(fmt::format("axes is {}; no axis may be there twice", DimsToString(axes)));
}

Status CheckRequest(OnnxNode& n, const ResizeRequest& request) {
  const size_t count = request.axes.size();
  if (request.scales.empty() == request.sizes.empty() && count > 0)
    return n.Error("has both scales and sizes, or neither; one must be given");
  const size_t given = request.scales.size() + request.sizes.size();
  if (given != count)
    return n.Error(fmt::format("has {} scales or sizes for {} axes", given, count));
  for (const double scale : request.scales) {
    if (!(scale > 0) || !std::isfinite(scale))
      return n.Error(fmt::format("a scale is {}; it must be above 0", scale));
  }
  for (const int64_t size : request.sizes) {
    if (size < 0) return n.Error(fmt::format("a size is {}; it must be at least 0", size));
  }
  if (request.roi.empty() || request.roi.size() == 2 * count) return Status();
  return n.Error(fmt::format("roi has {} numbers for {} axes; it must have two for each",
                             request.roi.size(), count));
}

// Version 10 has X, scales; since 11 X, roi, scales, sizes.
Result<ResizeRequest> ReadRequest(OnnxNode& n, bool crops) {
  ResizeRequest request;
  RIDGE_ASSIGN_OR_RETURN(request.axes, ReadAxes(n));
  const bool old = n.opset() < 11;
  RIDGE_ASSIGN_OR_RETURN(request.scales, ReadNumbers(n, old ? 1 : 2, "scales"));
  if (!old && n.has_input(3)) {
    RIDGE_ASSIGN_OR_RETURN(request.sizes, n.ConstantInts(3, "sizes"));
  }
  if (crops) {
    RIDGE_ASSIGN_OR_RETURN(request.roi, ReadNumbers(n, 1, "roi"));
    if (request.roi.empty()) return n.Error("tf_crop_and_resize needs a roi");
  }
  RIDGE_RETURN_IF_ERROR(CheckRequest(n, request));
  return request;
}

// One scale for all axes, by keep_aspect_ratio_policy: invalid sizes never get here.
Status KeepAspectRatio(OnnxNode& n, std::vector<OnnxResizeAxis>& axes) {
  const std::string policy = n.text("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch" || axes.empty()) return n.status();
  if (policy != "not_larger" && policy != "not_smaller")
    return n.Error(fmt::format("keep_aspect_ratio_policy is \"{}\"", policy));
  double scale = axes[0].scale;
  for (const OnnxResizeAxis& axis : axes)
    scale = policy == "not_larger" ? std::min(scale, axis.scale) : std::max(scale, axis.scale);
  for (OnnxResizeAxis& axis : axes) {
    axis.scale = scale;
    axis.output =
        static_cast<int64_t>(std::min(static_cast<double>(kMaxExtent) + 1,
                                      std::floor(scale * static_cast<double>(axis.input) + 0.5)));
  }
  return Status();
}

Result<std::vector<OnnxResizeAxis>> PlanAxes(OnnxNode& n, const ResizeRequest& request) {
  const Dims x = n.dims(0);
  std::vector<OnnxResizeAxis> axes;
  for (size_t i = 0; i < request.axes.size(); ++i) {
    OnnxResizeAxis axis{.axis = request.axes[i], .input = x[static_cast<size_t>(request.axes[i])]};
    const auto input = static_cast<double>(axis.input);
    if (request.sizes.empty()) {
      axis.scale = request.scales[i];
      // In f32, as the scales are: 5 * 1.4f is 7 there, and below 7 in f64.
      const float output = static_cast<float>(axis.scale) * static_cast<float>(axis.input);
      axis.output = static_cast<int64_t>(std::min(kMaxExtent + 1.0, std::floor(double{output})));
      // What does not change may be of any extent.
      if (axis.scale == 1) axis.output = axis.input;
    } else {
      axis.output = request.sizes[i];
      axis.scale = axis.input == 0 ? 1 : static_cast<double>(axis.output) / input;
    }
    if (!request.roi.empty()) {
      axis.roi_start = request.roi[i];
      axis.roi_end = request.roi[request.axes.size() + i];
    }
    axes.push_back(axis);
  }
  if (!request.sizes.empty()) RIDGE_RETURN_IF_ERROR(KeepAspectRatio(n, axes));
  for (const OnnxResizeAxis& axis : axes) {
    if (axis.output != axis.input && (axis.input == 0 || axis.output > kMaxExtent))
      return n.Unsupported(fmt::format("resizes {} to {}; from 1 to at most {} is supported",
                                       axis.input, axis.output, kMaxExtent));
  }
  return axes;
}

bool Stays(const ResizeMode& mode, const OnnxResizeAxis& axis) {
  const bool whole =
      mode.coordinates != "tf_crop_and_resize" || (axis.roi_start == 0 && axis.roi_end == 1);
  return axis.input == axis.output && axis.scale == 1 && whole;
}

// All axes with whole factors at once: one pass over the output.
Value RepeatAll(GraphBuilder& b, Value x, const std::vector<int64_t>& factors) {
  if (!b.ok()) return {};
  Dims split, wide, dims;
  const Dims from = x.dims();
  for (size_t d = 0; d < from.size(); ++d) {
    split.push_back(from[d]);
    wide.push_back(from[d]);
    dims.push_back(from[d] * factors[d]);
    if (factors[d] == 1) continue;
    split.push_back(1);
    wide.push_back(factors[d]);
  }
  return ReshapeExactly(Expand(ReshapeExactly(x, split), wide), dims);
}

// One axis with its table.
struct PlannedAxis {
  OnnxResizeAxis axis;
  ResizeTable table;
};

// Smaller results first, so that later axes have less to do; of equals the last axis, whose rows
// are one element wide.
Result<std::vector<PlannedAxis>> MakeTables(OnnxNode& n, const ResizeMode& mode,
                                            const std::vector<OnnxResizeAxis>& axes) {
  std::vector<PlannedAxis> planned;
  for (const OnnxResizeAxis& axis : axes) {
    if (Stays(mode, axis)) continue;
    Result<ResizeTable> table = MakeResizeTable(mode, axis);
    if (!table.ok())
      return Status(table.status().code(), n.where() + ": " + table.status().message());
    planned.push_back({axis, std::move(*table)});
  }
  const auto growth = [](const PlannedAxis& p) {
    return static_cast<double>(p.axis.output) / static_cast<double>(p.axis.input);
  };
  std::sort(planned.begin(), planned.end(), [&](const PlannedAxis& a, const PlannedAxis& b) {
    if (growth(a) != growth(b)) return growth(a) < growth(b);
    return a.axis.axis > b.axis.axis;
  });
  return planned;
}

// The factor of each axis when all of them repeat; empty when one does not.
std::vector<int64_t> RepeatFactors(const std::vector<PlannedAxis>& planned, size_t rank) {
  std::vector<int64_t> factors(rank, 1);
  for (const PlannedAxis& p : planned) {
    const int64_t factor = p.table.repeats(p.axis);
    if (factor == 0) return {};
    factors[static_cast<size_t>(p.axis.axis)] = factor;
  }
  return factors;
}

Value GatherAll(GraphBuilder& b, Value x, const std::vector<PlannedAxis>& planned) {
  for (const PlannedAxis& p : planned) {
    const auto count = static_cast<int64_t>(p.table.places.size());
    const Value places = b.Constant(Tensor::FromInts({count}, p.table.places), "places");
    x = Gather(x, places, p.axis.axis);
  }
  return x;
}

// y + value where some axis is outside; there y is 0.
Value Extrapolate(GraphBuilder& b, Value y, const std::vector<PlannedAxis>& planned, double value) {
  if (!b.ok() || value == 0) return y;
  const DType dtype = y.dtype();
  Value inside = b.Scalar(dtype, 1);
  for (const PlannedAxis& p : planned) {
    Dims dims(y.dims().size(), 1);
    dims[static_cast<size_t>(p.axis.axis)] = p.axis.output;
    Tensor mask({dtype, dims});
    for (size_t o = 0; o < p.table.outside.size(); ++o) {
      StoreFromDouble(dtype, mask.mutable_data(), static_cast<int64_t>(o),
                      p.table.outside[o] ? 0 : 1);
    }
    inside = inside * b.Constant(std::move(mask), "inside");
  }
  return y + (b.Scalar(dtype, 1) - inside) * value;
}

// The dtype to sum in: small integers fit f32.
DType SumDType(DType dtype) {
  if (IsFloat(dtype)) return dtype;
  return BytesPerElement(dtype) <= 2 ? DType::kF32 : DType::kF64;
}

Value InterpolateAll(GraphBuilder& b, Value x, const std::vector<PlannedAxis>& planned,
                     double extrapolation) {
  if (!b.ok()) return {};
  const DType dtype = x.dtype(), sum = SumDType(dtype);
  Value y = Cast(x, sum);
  for (const PlannedAxis& p : planned) y = Op("interpolate", {y}, p.table.attrs(p.axis.axis));
  y = Extrapolate(b, y, planned, extrapolation);
  return sum == dtype ? y : Cast(Round(y), dtype);
}

Status EmitResize(OnnxNode& n, const ResizeMode& mode, const std::vector<OnnxResizeAxis>& axes) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<PlannedAxis> planned, MakeTables(n, mode, axes));
  const double extrapolation = n.number("extrapolation_value", 0);
  GraphBuilder& b = n.b();
  const Value x = n[0];
  if (!n.ok()) return n.status();
  const std::vector<int64_t> factors = RepeatFactors(planned, x.dims().size());
  const bool copies = std::all_of(planned.begin(), planned.end(),
                                  [](const PlannedAxis& p) { return p.table.copies(); });
  if (planned.empty()) {
    n.Set(0, x);
  } else if (!factors.empty()) {
    n.Set(0, RepeatAll(b, x, factors));
  } else if (copies && !IsFloat(x.dtype())) {
    n.Set(0, GatherAll(b, x, planned));
  } else {
    n.Set(0, InterpolateAll(b, x, planned, extrapolation));
  }
  return n.status();
}

// What versions before 11 do: "linear" may be called bilinear, and nearest takes the place below,
// or above in what becomes smaller, as the example of opset 10 and onnxruntime have it.
ResizeMode OldMode(OnnxNode& n) {
  ResizeMode mode;
  mode.interpolation = n.text("mode", "nearest");
  if (mode.interpolation == "bilinear" || mode.interpolation == "trilinear")
    mode.interpolation = "linear";
  mode.coordinates = "asymmetric";
  mode.rounds_by_scale = true;
  return mode;
}

ResizeMode ReadMode(OnnxNode& n) {
  if (n.opset() < 11) return OldMode(n);
  ResizeMode mode;
  mode.interpolation = n.text("mode", mode.interpolation);
  mode.coordinates = n.text("coordinate_transformation_mode", mode.coordinates);
  mode.rounding = n.text("nearest_mode", mode.rounding);
  mode.cubic_a = n.number("cubic_coeff_a", mode.cubic_a);
  mode.exclude_outside = n.integer("exclude_outside", 0) != 0;
  mode.antialias = n.integer("antialias", 0) != 0;
  return mode;
}

}  // namespace

Status ConvertResize(OnnxNode& n) {
  const ResizeMode mode = ReadMode(n);
  RIDGE_ASSIGN_OR_RETURN(const ResizeRequest request,
                         ReadRequest(n, mode.coordinates == "tf_crop_and_resize"));
  RIDGE_ASSIGN_OR_RETURN(const std::vector<OnnxResizeAxis> axes, PlanAxes(n, request));
  return EmitResize(n, mode, axes);
}

// Version 7 has scales as an attribute, 9 as an input; 10 is Resize.
Status ConvertUpsample(OnnxNode& n) {
  ResizeRequest request;
  RIDGE_ASSIGN_OR_RETURN(request.axes, ReadAxes(n));
  request.scales = n.numbers("scales");
  if (request.scales.empty()) {
    RIDGE_ASSIGN_OR_RETURN(request.scales, ReadNumbers(n, 1, "scales"));
  }
  RIDGE_RETURN_IF_ERROR(CheckRequest(n, request));
  RIDGE_ASSIGN_OR_RETURN(const std::vector<OnnxResizeAxis> axes, PlanAxes(n, request));
  return EmitResize(n, OldMode(n), axes);
}

}  // namespace ridge
