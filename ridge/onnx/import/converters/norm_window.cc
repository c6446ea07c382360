// ONNX converters: normalizations by a sum over neighbours or axes.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/onnx/import/converters/norm.h"

namespace ridge {
namespace {

constexpr int64_t kMostNeighbours = 1024;  // slices that one LRN may take

// x[:, from : from + count] along axis 1.
Value SliceChannels(Value x, int64_t from, int64_t count) {
  return Slice(x, 1, from, from + count);
}

// sum over j in [c - below, c + above] of x[:, j], where channels outside count as 0.
Value SumNeighbours(Value x, int64_t below, int64_t above) {
  const Dims dims = x.dims();
  std::vector<int64_t> before(dims.size(), 0), after(dims.size(), 0);
  before[1] = below;
  after[1] = above;
  const Value padded = Op("pad", {x}, {{"before", before}, {"after", after}});
  Value sum = SliceChannels(padded, 0, dims[1]);
  for (int64_t k = 1; k <= below + above; ++k) {
    sum = sum + SliceChannels(padded, k, dims[1]);
  }
  return sum;
}

}  // namespace

// y = x / (bias + alpha / size * sum of x^2 over `size` channels around)^beta
Result<Value> ConvertLrn(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(NeedFloat(n, 2));
  GraphBuilder& b = n.b();
  const Value x = n[0];
  const int64_t size = n.integer("size", 0);
  const double alpha = n.number("alpha", 1e-4), beta = n.number("beta", 0.75);
  const double bias = n.number("bias", 1);
  if (!n.ok()) return n.status();
  if (size < 1) return n.Error(fmt::format("size is {}; it must be at least 1", size));
  const TensorType type = x.type();
  // Beyond the first and the last channel there is nothing to add.
  const int64_t most = std::max<int64_t>(type.dims[1] - 1, 0);
  const int64_t below = std::min((size - 1) / 2, most), above = std::min(size / 2, most);
  if (below + above >= kMostNeighbours) {
    return n.Unsupported(
        fmt::format("size is {}; at most {} channels are summed", size, kMostNeighbours));
  }
  const Value sum = SumNeighbours(Square(x), below, above);
  const Value base = sum * (alpha / static_cast<double>(size)) + bias;
  return x / Pow(base, b.Scalar(type.dtype, beta));
}

// y = x / |x|_p along one axis; 0 where the norm is 0.
Result<Value> ConvertLpNormalization(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(NeedFloat(n, 1));
  const Value x = n[0];
  const int64_t p = n.integer("p", 2);
  const TensorType type = x.type();
  RIDGE_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(n.integer("axis", -1), type.rank()));
  if (p != 1 && p != 2) return n.Error(fmt::format("p is {}; it must be 1 or 2", p));
  const Value power = Op(p == 1 ? "abs" : "square", {x});
  const Value sum = Sum(power, {axis}, /*keep_dims=*/true);
  // The root is taken of 1 where the sum is 0, so that the gradient there is 0 and not NaN.
  const Value zero = ScalarLike(sum, 0), one = ScalarLike(sum, 1);
  const Value safe = Where(Equal(sum, zero), one, sum);
  return x / (p == 1 ? safe : Sqrt(safe));
}

// y = (x - mean) / (sqrt(variance) + 1e-9)
Result<Value> ConvertMeanVarianceNormalization(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(NeedFloat(n, 1));
  const Value x = n[0];
  std::vector<int64_t> axes;
  RIDGE_ASSIGN_OR_RETURN(axes, n.Axes("axes", 1, x.rank(), {0, 2, 3}));
  if (axes.empty()) return n.Error("axes is empty; it must name at least one axis");
  const Value centered = x - Mean(x, axes, /*keep_dims=*/true);
  const Value variance = Mean(Square(centered), axes, /*keep_dims=*/true);
  return centered / (Sqrt(variance) + 1e-9);
}

}  // namespace ridge
