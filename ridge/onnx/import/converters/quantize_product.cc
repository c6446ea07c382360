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
Value PerRow(Value v, const Dims& dims) {
  const Dims given = v.dims();
  if (given.size() != 1 || dims.size() < 2) return v;
  return ReshapeExactly(v, {given[0], 1});
}
// One number a column of b [.., K, N]: broadcasts as it is.
Value PerColumn(Value v, const Dims&) { return v; }

// Of operands whose terms may be anything, or so many that exactness needs f64.
Value WideProduct(Value x, Value w) {
  const Value wide_w = Cast(w, DType::kF64);
  return Cast(MatMul(Cast(x, DType::kF64), wide_w), DType::kI32);
}

// x [.., M, K] times w [.., K, N] of whole numbers up to 255, as i32.
Value ExactMatMul(GraphBuilder& b, Value x, Value w) {
  if (!b.ok()) return {};
  const auto x_rank = static_cast<int64_t>(x.dims().size());
  const auto w_rank = static_cast<int64_t>(w.dims().size());
  const int64_t terms = x.dims().back();
  if (terms > kMostExactTerms * kMostExactParts) return WideProduct(x, w);
  if (terms <= kMostExactTerms) return Cast(MatMul(x, w), DType::kI32);
  Value sum;
  for (int64_t k = 0; k < terms; k += kMostExactTerms) {
    const int64_t end = std::min(terms, k + kMostExactTerms);
    const Value w_part = Slice(w, w_rank - 2, k, end, 1);
    const Value part = Cast(MatMul(Slice(x, x_rank - 1, k, end, 1), w_part), DType::kI32);
    sum = sum.valid() ? sum + part : part;
  }
  return sum;
}

// As i32 when both inputs are integers, else as f32.  A vector is a row on the left, a column on
// the right, and loses that 1 afterwards.
Result<Value> MatrixProduct(OnnxNode& n, Value x, Value w, bool exact) {
  GraphBuilder& b = n.b();
  if (!n.ok()) return n.status();
  const Dims left = x.dims(), right = w.dims();
  if (left.empty() || right.empty()) {
    return n.Error(fmt::format("the factors are {} and {}; both need at least 1 dimension",
                               DimsToString(left), DimsToString(right)));
  }
  if (left.size() == 1) x = ReshapeExactly(x, {1, left[0]});
  if (right.size() == 1) w = ReshapeExactly(w, {right[0], 1});
  if (x.dims().back() != w.dims().at(w.dims().size() - 2)) {
    return n.Error(
        fmt::format("the factors are {} and {}; the last extent of one must be the last "
                    "but one of the other",
                    DimsToString(left), DimsToString(right)));
  }
  const Value y = exact ? ExactMatMul(b, x, w) : MatMul(x, w);
  if (!n.ok()) return n.status();
  Dims dims = y.dims();
  if (right.size() == 1) dims.pop_back();
  if (left.size() == 1) dims.erase(dims.end() - (right.size() == 1 ? 1 : 2));
  return ReshapeExactly(y, dims);
}

// --- images ---------------------------------------------------------------------------------

// One number an output channel of w [O, C/groups, ..]: [O] -> [O, 1, ..].
Value PerKernel(Value v, const Dims& dims) {
  const Dims given = v.dims();
  if (given.size() != 1 || dims.empty()) return v;
  Dims wide(dims.size(), 1);
  wide[0] = given[0];
  return ReshapeExactly(v, wide);
}
// The same for y [B, O, ..].
Value PerChannel(Value v, const Dims& dims) {
  const Dims given = v.dims();
  if (given.size() != 1 || dims.size() < 2) return v;
  Dims wide(dims.size() - 1, 1);
  wide[0] = given[0];
  return ReshapeExactly(v, wide);
}
Value Same(Value v, const Dims&) { return v; }

// Parts of the channels, each short enough; i32.
Value ExactConv(GraphBuilder& b, Value x, Value w, const AttrMap& attrs) {
  if (!b.ok()) return {};
  const Dims kernel = w.dims();
  const int64_t channels = kernel[1], taps = OnnxElementCount(kernel, 2, kernel.size());
  const int64_t most = taps > 0 ? std::max<int64_t>(kMostExactTerms / taps, 1) : channels;
  if (channels <= most && taps <= kMostExactTerms)
    return Cast(Op("conv", {x, w}, attrs), DType::kI32);
  if (attrs.contains("groups") || taps > kMostExactTerms || channels / most >= kMostExactParts) {
    const Value y = Op("conv", {Cast(x, DType::kF64), Cast(w, DType::kF64)}, attrs);
    return Cast(y, DType::kI32);
  }
  Value sum;
  for (int64_t c = 0; c < channels; c += most) {
    const int64_t end = std::min(channels, c + most);
    const Value part = Op("conv", {Slice(x, 1, c, end, 1), Slice(w, 1, c, end, 1)}, attrs);
    sum = sum.valid() ? sum + Cast(part, DType::kI32) : Cast(part, DType::kI32);
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

Result<Value> ConvertMatMulInteger(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const Value x, OnnxCentered(n, 0, 2, PerRow));
  RIDGE_ASSIGN_OR_RETURN(const Value w, OnnxCentered(n, 1, 3, PerColumn));
  return MatrixProduct(n, x, w, /*exact=*/true);
}

Result<Value> ConvertQLinearMatMul(OnnxNode& n) {
  const DType dtype = n.type(0).dtype;
  const bool exact = IsInteger(dtype) && IsInteger(n.type(3).dtype);
  RIDGE_ASSIGN_OR_RETURN(const Value x, OnnxCentered(n, 0, 2, PerRow));
  RIDGE_ASSIGN_OR_RETURN(const Value w, OnnxCentered(n, 3, 5, PerColumn));
  RIDGE_ASSIGN_OR_RETURN(const Value product, MatrixProduct(n, x, w, exact));
  RIDGE_ASSIGN_OR_RETURN(const Value x_scale, OnnxSpreadInput(n, 1, n.dims(0), PerRow));
  RIDGE_ASSIGN_OR_RETURN(const Value w_scale, OnnxSpreadInput(n, 4, n.dims(3), PerColumn));
  const Value w_factor = Cast(w_scale, DType::kF32);
  const Value scale = Cast(x_scale, DType::kF32) * w_factor;
  return OnnxRequantized(n, product, scale, 6, dtype);
}

Result<Value> ConvertConvInteger(OnnxNode& n) { return ImageProduct(n, {0, 2, 1, 3}); }

Result<Value> ConvertQLinearConv(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const Value product, ImageProduct(n, {0, 2, 3, 5}));
  RIDGE_ASSIGN_OR_RETURN(const Value sum, AddChannelBias(n, product, n[8]));
  RIDGE_ASSIGN_OR_RETURN(const Value w_scale, OnnxSpreadInput(n, 4, sum.dims(), PerChannel));
  RIDGE_ASSIGN_OR_RETURN(const Value x_scale, OnnxSpreadInput(n, 1, sum.dims(), Same));
  const Value w_factor = Cast(w_scale, DType::kF32);
  const Value scale = Cast(x_scale, DType::kF32) * w_factor;
  return OnnxRequantized(n, sum, scale, 6, n.type(0).dtype);
}

}  // namespace ridge
