// ONNX converters: pools.
#include "ridge/graph/ops/shared/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ridge/graph/ops/shared/pool_positions.h"
#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/onnx/import/converters/conv.h"

namespace ridge {
namespace {

Result<AttrMap> ReadPoolAttrs(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  RIDGE_ASSIGN_OR_RETURN(const OnnxWindow window, ReadWindow(n, n.dims(0), {}));
  AttrMap attrs = window.attrs();
  attrs["kernel"] = window.kernel;
  // A padding that auto_pad has chosen leaves nothing to round up.
  if (n.integer("ceil_mode", 0) != 0) attrs["ceil_mode"] = 1;
  return attrs;
}

// The geometry of a pool over x with these attributes.
Result<PoolGeometry> GeometryOf(OnnxNode& n, const Dims& x, AttrMap attrs) {
  attrs.merge(PoolAttrDefaults());
  return MakePoolGeometry(
      OpCall{.where = n.where(), .inputs = {}, .outputs = {}, .attrs = std::move(attrs)}, x);
}

// Bytes are pooled as f32, which holds them exactly.
Status ConvertMaxPool(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const AttrMap attrs, ReadPoolAttrs(n));
  RIDGE_ASSIGN_OR_RETURN(const PoolGeometry geometry, GeometryOf(n, n.dims(0), attrs));
  GraphBuilder& b = n.b();
  const DType dtype = n.type(0).dtype;
  const Value x = n[0];
  const bool bytes = dtype == DType::kU8 || dtype == DType::kI8;
  const std::vector<Value> out = OpOutputs("max_pool", {bytes ? Cast(x, DType::kF32) : x}, attrs);
  n.Set(0, Cast(out[0], dtype));
  if (n.wants(1)) {
    const bool column_major = n.integer("storage_order", 0) != 0;
    n.Set(1, MaxPoolPositions(b, out[1], geometry, column_major));
  }
  return n.status();
}

Result<Value> ConvertAveragePool(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(AttrMap attrs, ReadPoolAttrs(n));
  if (n.integer("count_include_pad", 0) != 0) attrs["count_include_pad"] = 1;
  return Op("avg_pool", {n[0]}, attrs);
}

// All but batch and channels.
Result<std::vector<int64_t>> SpatialAxes(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  const Dims x = n.dims(0);
  if (x.size() < 3) {
    return n.Error(
        fmt::format("X has shape {}; it must be [batch, channels, extents]", DimsToString(x)));
  }
  std::vector<int64_t> axes(x.size() - 2);
  std::iota(axes.begin(), axes.end(), int64_t{2});
  return axes;
}

Result<Value> ConvertGlobalAveragePool(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, SpatialAxes(n));
  return Mean(n[0], axes, /*keep_dims=*/true);
}

// The first of equals takes the gradient, as in MaxPool: along one axis that holds all positions.
Result<Value> ConvertGlobalMaxPool(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(SpatialAxes(n).status());
  const Dims x = n.dims(0);
  Dims pooled(x.size(), 1);
  std::copy_n(x.begin(), 2, pooled.begin());
  const int64_t positions = ElementCount(Dims(x.begin() + 2, x.end()));
  const Value flat = ReshapeExactly(n[0], {x[0], x[1], positions});
  const Value y = Op("reduce_max", {flat}, {{"axes", {2}}, {"ties", "first"}});
  return ReshapeExactly(y, pooled);
}

// p: an integer, in version 1 a float.
Result<double> ReadExponent(OnnxNode& n) {
  const double p = n.opset() < 2 ? n.number("p", 2) : static_cast<double>(n.integer("p", 2));
  if (p > 0 && std::isfinite(p)) return p;
  return n.Error(fmt::format("p is {}; it must be above 0", p));
}

Value Power(GraphBuilder& b, Value x, double p) {
  if (!b.ok() || p == 1) return x;
  if (p == 2) return Square(x);
  if (p == 0.5) return Sqrt(x);
  return Pow(x, ScalarLike(x, p));
}

// |x|^p; a square needs no sign taken off.
Value AbsolutePower(GraphBuilder& b, Value x, double p) {
  return p == 2 ? Power(b, x, p) : Power(b, Abs(x), p);
}

// `mean` times the number of taps that avg_pool divided by, which differs from window to window
// where ceil_mode lets the last ones hang over.
Value SumsFromMeans(GraphBuilder& b, Value mean, const SlidingWindow& window) {
  double taps = 1;
  for (size_t d = 0; d < window.own().size(); ++d) {
    const WindowAxis& axis = window.own()[d];
    Dims dims(window.own().size() + 2, 1);
    dims[d + 2] = axis.output;
    if (!b.ok()) return {};
    Tensor counts({mean.dtype(), dims});
    bool whole = true;
    for (int64_t o = 0; o < axis.output; ++o) {
      const int64_t count = axis.TapsOfOutput(o, /*with_padding=*/true);
      whole = whole && count == axis.kernel;
      StoreFromDouble(mean.dtype(), counts.mutable_data(), o, static_cast<double>(count));
    }
    if (whole) {
      taps *= static_cast<double>(axis.kernel);
    } else {
      mean = mean * b.Constant(std::move(counts));
    }
  }
  return mean * taps;
}

Result<Value> ConvertLpPool(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(AttrMap attrs, ReadPoolAttrs(n));
  RIDGE_ASSIGN_OR_RETURN(const PoolGeometry geometry, GeometryOf(n, n.dims(0), attrs));
  RIDGE_ASSIGN_OR_RETURN(const double p, ReadExponent(n));
  GraphBuilder& b = n.b();
  attrs["count_include_pad"] = 1;
  const Value mean = Op("avg_pool", {AbsolutePower(b, n[0], p)}, attrs);
  return Power(b, SumsFromMeans(b, mean, geometry.window), 1 / p);
}

Result<Value> ConvertGlobalLpPool(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, SpatialAxes(n));
  RIDGE_ASSIGN_OR_RETURN(const double p, ReadExponent(n));
  GraphBuilder& b = n.b();
  const Value sums = Sum(AbsolutePower(b, n[0], p), axes, /*keep_dims=*/true);
  return Power(b, sums, 1 / p);
}

// What a pool of this window was made from, without regard to what its strides left over.
Result<Dims> UnpooledDims(OnnxNode& n, const Dims& x, const OnnxWindow& window) {
  Dims dims = {x[0], x[1]};
  for (size_t d = 0; d < window.rank(); ++d) {
    dims.push_back((x[d + 2] - 1) * window.stride[d] + window.kernel[d] - window.pad_begin[d] -
                   window.pad_end[d]);
  }
  const Status good = CheckDims(dims);
  return good.ok() ? Result<Dims>(dims) : n.Error("output: " + good.message());
}

// `y` of `inferred` dims in the corner of zeros of `wanted` dims.
Result<Value> Cornered(OnnxNode& n, Value y, const Dims& inferred, const Dims& wanted) {
  if (wanted == inferred) return y;
  Dims after;
  bool fits = wanted.size() == inferred.size();
  for (size_t d = 0; fits && d < wanted.size(); ++d) {
    fits = wanted[d] >= inferred[d];
    after.push_back(wanted[d] - inferred[d]);
  }
  if (!fits) {
    return n.Error(fmt::format("output_shape is {}; it must hold {}", DimsToString(wanted),
                               DimsToString(inferred)));
  }
  const Dims before(after.size(), 0);
  return Op("pad", {y}, {{"before", before}, {"after", after}});
}

// Indices count in the array without output_shape, as in the reference implementation.
Result<Value> ConvertMaxUnpool(OnnxNode& n) {
  const TensorType x = n.type(0);
  RIDGE_ASSIGN_OR_RETURN(const OnnxWindow window, ReadWindow(n, x.dims, {}));
  RIDGE_ASSIGN_OR_RETURN(const Dims inferred, UnpooledDims(n, x.dims, window));
  Dims wanted = inferred;
  if (n.has_input(2)) {
    RIDGE_ASSIGN_OR_RETURN(wanted, n.ConstantInts(2, "output_shape"));
    if (const Status good = CheckDims(wanted); !good.ok()) return n.Error(good.message());
  }
  if (n.dims(1) != x.dims) {
    return n.Error(fmt::format("I has shape {}, X {}; they must be the same",
                               DimsToString(n.dims(1)), DimsToString(x.dims)));
  }
  GraphBuilder& b = n.b();
  const Dims flat = {x.elements()};
  const Value zeros = Expand(b.Scalar(x.dtype, 0), {ElementCount(inferred)});
  const Value y = Op("scatter", {zeros, ReshapeExactly(n[1], flat), ReshapeExactly(n[0], flat)});
  return Cornered(n, ReshapeExactly(y, inferred), inferred, wanted);
}

constexpr OnnxConverter kTable[] = {
    {"", "AveragePool", ConvertAveragePool},
    {"", "GlobalAveragePool", ConvertGlobalAveragePool},
    {"", "GlobalLpPool", ConvertGlobalLpPool},
    {"", "GlobalMaxPool", ConvertGlobalMaxPool},
    {"", "LpPool", ConvertLpPool},
    {"", "MaxPool", ConvertMaxPool},
    {"", "MaxUnpool", ConvertMaxUnpool, 2},
};

}  // namespace

std::span<const OnnxConverter> OnnxPoolConverters() { return kTable; }

}  // namespace ridge
