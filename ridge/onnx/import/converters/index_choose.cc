// ONNX converters: the largest, the smallest, the k best.
#include <fmt/format.h>

#include "ridge/onnx/import/converters/index.h"

namespace ridge {
namespace {

// x turned around so that its smallest element is the largest, exactly: -x for floats, the bits
// flipped for integers (-1 - x, or the largest number - x without a sign).
Value Mirrored(GraphBuilder& b, Value x) {
  const DType dtype = x.dtype();
  if (IsFloat(dtype)) return -x;
  const bool has_sign = Tensor::Scalar(dtype, -1).at(0) < 0;
  return b.Scalar(dtype, has_sign ? -1 : 0x1p70) - x;  // 2^70 saturates
}

// The index of the largest along `axis`, which stays with extent 1.
Value LargestIndex(GraphBuilder& b, Value x, int64_t axis, bool last) {
  const AttrMap attrs = {{"axis", axis}, {"keep_dims", 1}};
  if (!last) return Op("argmax", {x}, attrs);
  const int64_t extent = b.ok() ? x.dims()[static_cast<size_t>(axis)] : 0;
  const Value backward = Slice(x, axis, -1, INT64_MIN, -1);
  const Value from_end = Op("argmax", {backward}, attrs);
  return b.Scalar(DType::kI64, static_cast<double>(extent - 1)) - from_end;
}

Result<Value> ConvertExtremum(OnnxNode& n, bool smallest) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  Dims dims = n.dims(0);
  RIDGE_ASSIGN_OR_RETURN(const int64_t axis,
                         n.Axis(n.integer("axis", 0), static_cast<int>(dims.size())));
  GraphBuilder& b = n.b();
  Value x = n[0];
  if (!n.ok()) return n.status();
  if (smallest) x = Mirrored(b, x);
  const Value y = LargestIndex(b, x, axis, n.integer("select_last_index", 0) != 0);
  dims[static_cast<size_t>(axis)] = 1;
  if (n.integer("keepdims", 1) == 0) dims.erase(dims.begin() + axis);
  return ReshapeExactly(y, dims);
}

}  // namespace

Result<Value> ConvertArgMax(OnnxNode& n) { return ConvertExtremum(n, /*smallest=*/false); }
Result<Value> ConvertArgMin(OnnxNode& n) { return ConvertExtremum(n, /*smallest=*/true); }

// 1 at the first largest, 0 elsewhere.  Before opset 13 x was flattened to two dimensions at
// `axis`.
Result<Value> ConvertHardmax(OnnxNode& n) {
  const TensorType type = n.type(0);
  const auto rank = static_cast<int64_t>(type.dims.size());
  const bool flattens = n.opset() < 13;
  int64_t axis = n.integer("axis", flattens ? 1 : -1);
  if (flattens && axis == rank) axis = rank - 1;  // one element a row, as in [.., 1]
  RIDGE_ASSIGN_OR_RETURN(axis, n.Axis(axis, static_cast<int>(rank)));
  const auto at = static_cast<size_t>(axis);
  GraphBuilder& b = n.b();
  Value x = n[0];
  Dims dims = type.dims;
  if (flattens) {
    dims = {OnnxElementCount(dims, 0, at), OnnxElementCount(dims, at, dims.size())};
    x = ReshapeExactly(x, dims);
    axis = 1;
  }
  RIDGE_ASSIGN_OR_RETURN(Value numbers, OnnxIota(n, dims[static_cast<size_t>(axis)]));
  Dims along(dims.size(), 1);
  along[static_cast<size_t>(axis)] = dims[static_cast<size_t>(axis)];
  numbers = ReshapeExactly(numbers, along);
  const Value hot = Equal(numbers, LargestIndex(b, x, axis, /*last=*/false));
  return ReshapeExactly(Cast(hot, type.dtype), type.dims);
}

Status ConvertTopK(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(n.opset() < 10 ? 1 : 2));
  int64_t k = n.integer("k", 0);
  if (n.opset() >= 10) {
    RIDGE_ASSIGN_OR_RETURN(k, n.ConstantInt(1, "K"));
  }
  const std::vector<Value> best = OpOutputs(
      "top_k", {n[0]},
      {{"k", k}, {"axis", n.integer("axis", -1)}, {"largest", n.integer("largest", 1) != 0}});
  n.Set(0, best[0]);
  n.Set(1, best[1]);
  return n.status();
}

}  // namespace ridge
