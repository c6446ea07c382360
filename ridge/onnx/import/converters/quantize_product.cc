// Products of quantized matrices and images: operands less their zero points, multiplied exactly.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/onnx/import/converters/conv.h"
#include "ridge/onnx/import/converters/quantize.h"
#include "ridge/onnx/import/converters/shape.h"

namespace ridge {
namespace {

// --- matrices -------------------------------------------------------------------------------

// One number a row of a [.., M, K]: [M] -> [M, 1].
Result<Value> PerRow(OnnxNode& n, Value v, const Dims& dims) {
  const Dims given = n.b().dims(v);
  if (given.size() != 1 || dims.size() < 2) return v;
  return ReshapeExactly(n.b(), v, {given[0], 1});
}
// One number a column of b [.., K, N]: broadcasts as it is.
Result<Value> PerColumn(OnnxNode&, Value v, const Dims&) { return v; }

// Of operands whose terms may be anything, or so many that exactness needs f64.
Value WideProduct(GraphBuilder& b, Value x, Value w) {
  return b.Cast(b.MatMul(b.Cast(x, DType::kF64), b.Cast(w, DType::kF64)), DType::kI32);
}

// x [.., M, K] times w [.., K, N] of whole numbers up to 255, as i32.
Value ExactMatMul(GraphBuilder& b, Value x, Value w) {
  if (!b.ok()) return {};
  const auto x_rank = static_cast<int64_t>(b.dims(x).size());
  const auto w_rank = static_cast<int64_t>(b.dims(w).size());
  const int64_t terms = b.dims(x).back();
  if (terms > kMostExactTerms * kMostExactParts) return WideProduct(b, x, w);
  if (terms <= kMostExactTerms) return b.Cast(b.MatMul(x, w), DType::kI32);
  Value sum;
  for (int64_t k = 0; k < terms; k += kMostExactTerms) {
    const int64_t end = std::min(terms, k + kMostExactTerms);
    const Value part = b.Cast(
        b.MatMul(OnnxSliceAxis(b, x, x_rank - 1, k, end), OnnxSliceAxis(b, w, w_rank - 2, k, end)),
        DType::kI32);
    sum = sum.valid() ? b.Add(sum, part) : part;
  }
  return sum;
}

// As i32 when both inputs are integers, else as f32.  A vector is a row on the left, a column on
// the right, and loses that 1 afterwards.
Result<Value> MatrixProduct(OnnxNode& n, Value x, Value w, bool exact) {
  GraphBuilder& b = n.b();
  if (!n.ok()) return n.status();
  const Dims left = b.dims(x), right = b.dims(w);
  if (left.empty() || right.empty()) {
    return n.Error(fmt::format("the factors are {} and {}; both need at least 1 dimension",
                               DimsToString(left), DimsToString(right)));
  }
  if (left.size() == 1) x = ReshapeExactly(b, x, {1, left[0]});
  if (right.size() == 1) w = ReshapeExactly(b, w, {right[0], 1});
  if (b.dims(x).back() != b.dims(w).at(b.dims(w).size() - 2)) {
    return n.Error(
        fmt::format("the factors are {} and {}; the last extent of one must be the last "
                    "but one of the other",
                    DimsToString(left), DimsToString(right)));
  }
  const Value y = exact ? ExactMatMul(b, x, w) : b.MatMul(x, w);
  if (!n.ok()) return n.status();
  Dims dims = b.dims(y);
  if (right.size() == 1) dims.pop_back();
  if (left.size() == 1) dims.erase(dims.end() - (right.size() == 1 ? 1 : 2));
  return ReshapeExactly(b, y, dims);
}

// --- images ---------------------------------------------------------------------------------

// One number an output channel of w [O, C/groups, ..]: [O] -> [O, 1, ..].
Result<Value> PerKernel(OnnxNode& n, Value v, const Dims& dims) {
  const Dims given = n.b().dims(v);
  if (given.size() != 1 || dims.empty()) return v;
  Dims wide(dims.size(), 1);
  wide[0] = given[0];
  return ReshapeExactly(n.b(), v, wide);
}
// The same for y [B, O, ..].
Result<Value> PerChannel(OnnxNode& n, Value v, const Dims& dims) {
  const Dims given = n.b().dims(v);
  if (given.size() != 1 || dims.size() < 2) return v;
  Dims wide(dims.size() - 1, 1);
  wide[0] = given[0];
  return ReshapeExactly(n.b(), v, wide);
}
Result<Value> Same(OnnxNode&, Value v, const Dims&) { return v; }

// Parts of the channels, each short enough; i32.
Value ExactConv(GraphBuilder& b, Value x, Value w, const AttrMap& attrs) {
  if (!b.ok()) return {};
  const Dims kernel = b.dims(w);
  const int64_t channels = kernel[1], taps = OnnxExtent(kernel, 2, kernel.size());
  const int64_t most = taps > 0 ? std::max<int64_t>(kMostExactTerms / taps, 1) : channels;
  if (channels <= most && taps <= kMostExactTerms)
    return b.Cast(b.Op("conv", {x, w}, attrs), DType::kI32);
  if (attrs.contains("groups") || taps > kMostExactTerms || channels / most >= kMostExactParts) {
    const Value y = b.Op("conv", {b.Cast(x, DType::kF64), b.Cast(w, DType::kF64)}, attrs);
    return b.Cast(y, DType::kI32);
  }
  Value sum;
  for (int64_t c = 0; c < channels; c += most) {
    const int64_t end = std::min(channels, c + most);
    const Value part =
        b.Op("conv", {OnnxSliceAxis(b, x, 1, c, end), OnnxSliceAxis(b, w, 1, c, end)}, attrs);
    sum = sum.valid() ? b.Add(sum, b.Cast(part, DType::kI32)) : b.Cast(part, DType::kI32);
  }
  return sum;
}

// The inputs of one convolution: x and w, and the places of their zero points.
struct ConvInputs {
  size_t x, x_zero, w, w_zero;
};

// The zero point is subtracted before x is padded with zeros, so what lies outside counts as 0.
Result<Value> ImageProduct(OnnxNode& n, const ConvInputs& at) {
  const Dims x = n.dims(at.x), w = n.dims(at.w);
  if (x.size() != w.size() || w.size() < 3) {
    return n.Error(fmt::format("x is {} and w {}; both need one rank, 3 to 5", DimsToString(x),
                               DimsToString(w)));
  }
  RIDGE_ASSIGN_OR_RETURN(const OnnxWindow window,
                         ReadWindow(n, x, std::vector<int64_t>(w.begin() + 2, w.end())));
  AttrMap attrs = window.attrs();
  const int64_t groups = n.integer("group", 1);
  if (groups != 1) attrs["groups"] = groups;
  if (groups == 1 && w[1] != x[1]) {
    return n.Error(fmt::format("x has {} channels and w {}; they must be as many", x[1], w[1]));
  }
  RIDGE_ASSIGN_OR_RETURN(const Value image, OnnxCentered(n, at.x, at.x_zero, Same));
  RIDGE_ASSIGN_OR_RETURN(const Value kernel, OnnxCentered(n, at.w, at.w_zero, PerKernel));
  return ExactConv(n.b(), image, kernel, attrs);
}

}  // namespace

Status ConvertMatMulInteger(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(2));
  RIDGE_ASSIGN_OR_RETURN(const Value x, OnnxCentered(n, 0, 2, PerRow));
  RIDGE_ASSIGN_OR_RETURN(const Value w, OnnxCentered(n, 1, 3, PerColumn));
  RIDGE_ASSIGN_OR_RETURN(const Value y, MatrixProduct(n, x, w, /*exact=*/true));
  n.Set(0, y);
  return n.status();
}

Status ConvertQLinearMatMul(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(8));
  GraphBuilder& b = n.b();
  const DType dtype = n.type(0).dtype;
  const bool exact = IsInteger(dtype) && IsInteger(n.type(3).dtype);
  RIDGE_ASSIGN_OR_RETURN(const Value x, OnnxCentered(n, 0, 2, PerRow));
  RIDGE_ASSIGN_OR_RETURN(const Value w, OnnxCentered(n, 3, 5, PerColumn));
  RIDGE_ASSIGN_OR_RETURN(const Value product, MatrixProduct(n, x, w, exact));
  RIDGE_ASSIGN_OR_RETURN(const Value x_scale, OnnxSpreadInput(n, 1, n.dims(0), PerRow));
  RIDGE_ASSIGN_OR_RETURN(const Value w_scale, OnnxSpreadInput(n, 4, n.dims(3), PerColumn));
  const Value scale = b.Mul(b.Cast(x_scale, DType::kF32), b.Cast(w_scale, DType::kF32));
  RIDGE_ASSIGN_OR_RETURN(const Value y, OnnxRequantized(n, product, scale, 6, dtype));
  n.Set(0, y);
  return n.status();
}

Status ConvertConvInteger(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(2));
  RIDGE_ASSIGN_OR_RETURN(const Value y, ImageProduct(n, {0, 2, 1, 3}));
  n.Set(0, y);
  return n.status();
}

Status ConvertQLinearConv(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(8));
  GraphBuilder& b = n.b();
  RIDGE_ASSIGN_OR_RETURN(const Value product, ImageProduct(n, {0, 2, 3, 5}));
  RIDGE_ASSIGN_OR_RETURN(const Value sum, AddChannelBias(n, product, n.input(8)));
  if (!n.ok()) return n.status();
  RIDGE_ASSIGN_OR_RETURN(const Value w_scale, OnnxSpreadInput(n, 4, b.dims(sum), PerChannel));
  RIDGE_ASSIGN_OR_RETURN(const Value x_scale, OnnxSpreadInput(n, 1, b.dims(sum), Same));
  const Value scale = b.Mul(b.Cast(x_scale, DType::kF32), b.Cast(w_scale, DType::kF32));
  RIDGE_ASSIGN_OR_RETURN(const Value y, OnnxRequantized(n, sum, scale, 6, n.type(0).dtype));
  n.Set(0, y);
  return n.status();
}

}  // namespace ridge
