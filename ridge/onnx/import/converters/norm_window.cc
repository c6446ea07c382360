// ONNX converters: normalizations by a sum over neighbours or axes.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/onnx/import/converters/norm.h"

namespace ridge {
namespace {

constexpr int64_t kMostNeighbours = 1024;  // slices that one LRN may take

// x[:, from : from + count] along axis 1.
Value SliceChannels(GraphBuilder& b, Value x, int64_t from, int64_t count) {
  return b.Op("slice", {x},
              {{"axes", std::vector<int64_t>{1}},
               {"starts", std::vector<int64_t>{from}},
               {"ends", std::vector<int64_t>{from + count}}});
}

// sum over j in [c - below, c + above] of x[:, j], where channels outside count as 0.
Value SumNeighbours(OnnxNode& n, Value x, int64_t below, int64_t above) {
  GraphBuilder& b = n.b();
  const Dims dims = b.dims(x);
  std::vector<int64_t> before(dims.size(), 0), after(dims.size(), 0);
  before[1] = below;
  after[1] = above;
  const Value padded = b.Op("pad", {x}, {{"before", before}, {"after", after}});
  Value sum = SliceChannels(b, padded, 0, dims[1]);
  for (int64_t k = 1; k <= below + above; ++k) {
    sum = b.Add(sum, SliceChannels(b, padded, k, dims[1]));
  }
  return sum;
}

}  // namespace

// y = x / (bias + alpha / size * sum of x^2 over `size` channels around)^beta
Status ConvertLrn(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(NeedFloat(n, 2));
  GraphBuilder& b = n.b();
  const Value x = n.input(0);
  const int64_t size = n.integer("size", 0);
  const double alpha = n.number("alpha", 1e-4), beta = n.number("beta", 0.75);
  const double bias = n.number("bias", 1);
  if (!n.ok()) return n.status();
  if (size < 1) return n.Error(fmt::format("size is {}; it must be at least 1", size));
  const TensorType type = b.type(x);
  // Beyond the first and the last channel there is nothing to add.
  const int64_t most = std::max<int64_t>(type.dims[1] - 1, 0);
  const int64_t below = std::min((size - 1) / 2, most), above = std::min(size / 2, most);
  if (below + above >= kMostNeighbours) {
    return n.Unsupported(
        fmt::format("size is {}; at most {} channels are summed", size, kMostNeighbours));
  }
  const Value sum = SumNeighbours(n, b.Op("square", {x}), below, above);
  const Value base = b.AddScalar(b.MulScalar(sum, alpha / static_cast<double>(size)), bias);
  n.Set(0, b.Div(x, b.Op("pow", {base, b.Scalar(type.dtype, beta)})));
  return n.status();
}

// y = x / |x|_p along one axis; 0 where the norm is 0.
Status ConvertLpNormalization(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(NeedFloat(n, 1));
  GraphBuilder& b = n.b();
  const Value x = n.input(0);
  const int64_t p = n.integer("p", 2);
  if (!n.ok()) return n.status();
  const TensorType type = b.type(x);
  RIDGE_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(n.integer("axis", -1), type.rank()));
  if (p != 1 && p != 2) return n.Error(fmt::format("p is {}; it must be 1 or 2", p));
  const Value power = b.Op(p == 1 ? "abs" : "square", {x});
  const Value sum = b.ReduceSum(power, {axis}, /*keep_dims=*/true);
  // The root is taken of 1 where the sum is 0, so that the gradient there is 0 and not NaN.
  const Value zero = b.Scalar(type.dtype, 0);
  const Value safe = b.Where(b.Op("equal", {sum, zero}), b.Scalar(type.dtype, 1), sum);
  n.Set(0, b.Div(x, p == 1 ? safe : b.Sqrt(safe)));
  return n.status();
}

// y = (x - mean) / (sqrt(variance) + 1e-9)
Status ConvertMeanVarianceNormalization(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(NeedFloat(n, 1));
  GraphBuilder& b = n.b();
  const Value x = n.input(0);
  if (!n.ok()) return n.status();
  std::vector<int64_t> axes;
  RIDGE_ASSIGN_OR_RETURN(axes, n.Axes("axes", 1, b.type(x).rank(), {0, 2, 3}));
  if (axes.empty()) return n.Error("axes is empty; it must name at least one axis");
  const Value centered = b.Sub(x, b.ReduceMean(x, axes, /*keep_dims=*/true));
  const Value variance = b.ReduceMean(b.Op("square", {centered}), axes, /*keep_dims=*/true);
  n.Set(0, b.Div(centered, b.AddScalar(b.Sqrt(variance), 1e-9)));
  return n.status();
}

}  // namespace ridge
