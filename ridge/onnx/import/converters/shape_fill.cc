// ONNX converters: tensors out of nothing: constants, ranges, diagonals, triangles, one-hot.
//
// Masks are comparisons of a row of numbers with a column of them, so a large one is computed where
// it is used and never stored in the model.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "onnx/onnx-ml.pb.h"
#include "ridge/onnx/file/tensor.h"
#include "ridge/onnx/import/converters/shape.h"
#include "ridge/onnx/import/importer.h"

namespace ridge {
namespace {

Result<Tensor> SparseValue(OnnxNode& n) {
  for (const onnx::AttributeProto& attr : n.proto().attribute()) {
    if (attr.name() != "sparse_value" || !attr.has_sparse_tensor()) continue;
    Result<Tensor> tensor = DenseTensor(attr.sparse_tensor());
    if (tensor.ok()) return tensor;
    return Status(tensor.status().code(), n.where() + ": " + tensor.status().message());
  }
  return n.Error("attribute 'sparse_value' is no sparse tensor");
}

Result<Tensor> ConstantValue(OnnxNode& n) {
  if (n.has_attr("value")) return n.tensor("value");
  if (n.has_attr("sparse_value")) return SparseValue(n);
  if (n.has_attr("value_float")) return Tensor::Scalar(DType::kF32, n.number("value_float", 0));
  if (n.has_attr("value_int")) {
    const std::vector<int64_t> value = {n.integer("value_int", 0)};
    return Tensor::FromInts({}, value);
  }
  if (n.has_attr("value_ints")) {
    const std::vector<int64_t> list = n.integers("value_ints");
    return Tensor::FromInts({static_cast<int64_t>(list.size())}, list);
  }
  if (n.has_attr("value_floats")) {
    const std::vector<double> list = n.numbers("value_floats");
    const std::vector<float> floats(list.begin(), list.end());
    return Tensor::FromFloats({static_cast<int64_t>(floats.size())}, floats);
  }
  if (n.has_attr("value_string") || n.has_attr("value_strings")) {
    return n.Unsupported("holds strings; only numbers are supported");
  }
  return n.Error("has no attribute 'value'");
}

}  // namespace

Status ConvertConstant(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(Tensor value, ConstantValue(n));
  if (n.ok() && n.wants(0)) n.importer().BindConstant(n.proto().output(0), std::move(value));
  return n.status();
}

Result<Value> ConvertConstantOfShape(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const Dims dims, n.ConstantInts(0, "the shape"));
  if (Status status = CheckDims(dims); !status.ok()) return n.Error(status.message());
  Tensor value = Tensor::Scalar(DType::kF32, 0);
  if (n.has_attr("value")) {
    RIDGE_ASSIGN_OR_RETURN(value, n.tensor("value"));
  }
  if (value.elements() != 1) {
    return n.Error(
        fmt::format("value is {}; it must have one element", TypeToString(value.type())));
  }
  GraphBuilder& b = n.b();
  return Expand(ReshapeExactly(b.Constant(std::move(value)), {}), dims);
}

namespace {

constexpr int64_t kMostRange = int64_t{1} << 22;

Status RangeTooLong(const OnnxNode& n) {
  return n.Unsupported("gives more than 2^22 numbers, or its delta is 0");
}

// In exact integers: max(0, ceil((limit - start) / delta)) of them.
Result<Tensor> IntegerRange(OnnxNode& n, DType dtype) {
  RIDGE_ASSIGN_OR_RETURN(const int64_t start, n.ConstantInt(0, "start"));
  RIDGE_ASSIGN_OR_RETURN(const int64_t limit, n.ConstantInt(1, "limit"));
  RIDGE_ASSIGN_OR_RETURN(const int64_t delta, n.ConstantInt(2, "delta"));
  if (delta == 0) return RangeTooLong(n);
  const __int128 distance = static_cast<__int128>(limit) - start;
  const __int128 whole = distance / delta + (distance % delta != 0 ? 1 : 0);
  const bool none = distance == 0 || (distance > 0) != (delta > 0);
  if (!none && whole > kMostRange) return RangeTooLong(n);
  const auto count = none ? int64_t{0} : static_cast<int64_t>(whole);
  Tensor range({dtype, {count}});
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<int64_t>(start + static_cast<__int128>(delta) * i);
    if (dtype == DType::kI64) {
      range.as_mutable<int64_t>()[i] = value;
    } else {
      StoreFromDouble(dtype, range.mutable_data(), i, static_cast<double>(value));
    }
  }
  return range;
}

Result<Tensor> FloatRange(OnnxNode& n, DType dtype) {
  RIDGE_ASSIGN_OR_RETURN(const double start, n.ConstantNumber(0, "start"));
  RIDGE_ASSIGN_OR_RETURN(const double limit, n.ConstantNumber(1, "limit"));
  RIDGE_ASSIGN_OR_RETURN(const double delta, n.ConstantNumber(2, "delta"));
  const double count = std::ceil((limit - start) / delta);
  if (delta == 0 || !(count <= static_cast<double>(kMostRange))) return RangeTooLong(n);
  Tensor range({dtype, {static_cast<int64_t>(std::max(count, 0.0))}});
  for (int64_t i = 0; i < range.elements(); ++i)
    StoreFromDouble(dtype, range.mutable_data(), i, start + static_cast<double>(i) * delta);
  return range;
}

}  // namespace

Result<Value> ConvertRange(OnnxNode& n) {
  const DType dtype = n.type(0).dtype;
  Result<Tensor> range = IsFloat(dtype) ? FloatRange(n, dtype) : IntegerRange(n, dtype);
  RIDGE_RETURN_IF_ERROR(range.status());
  return n.b().Constant(*std::move(range), "range");
}

namespace {

struct RowsAndColumns {
  Value row, column;  // i64 [rows, 1] and [columns]
};

Result<RowsAndColumns> Coordinates(OnnxNode& n, int64_t rows, int64_t columns) {
  RIDGE_ASSIGN_OR_RETURN(const Value row, OnnxIota(n, rows));
  RIDGE_ASSIGN_OR_RETURN(const Value column, OnnxIota(n, columns));
  return RowsAndColumns{ReshapeExactly(row, {rows, 1}), column};
}

// A diagonal further away than any extent is as good as one just outside.
double Diagonal(int64_t k) {
  constexpr int64_t kMost = int64_t{1} << 48;
  return static_cast<double>(std::clamp(k, -kMost, kMost));
}

}  // namespace

Result<Value> ConvertEyeLike(OnnxNode& n) {
  const Dims dims = n.dims(0);
  if (dims.size() != 2)
    return n.Error(fmt::format("the input is {}; it must have rank 2", DimsToString(dims)));
  RIDGE_ASSIGN_OR_RETURN(const DType dtype, OnnxDTypeAttr(n, "dtype", n.type(0).dtype));
  RIDGE_ASSIGN_OR_RETURN(const RowsAndColumns at, Coordinates(n, dims[0], dims[1]));
  const Value wanted = at.row + Diagonal(n.integer("k", 0));
  return Cast(Equal(at.column, wanted), dtype);
}

// Kept where column >= row + k (upper) or column <= row + k.
Result<Value> ConvertTrilu(OnnxNode& n) {
  const TensorType type = n.type(0);
  const size_t rank = type.dims.size();
  if (rank < 2)
    return n.Error(
        fmt::format("the input is {}; it must have rank 2 or more", DimsToString(type.dims)));
  RIDGE_ASSIGN_OR_RETURN(const RowsAndColumns at,
                         Coordinates(n, type.dims[rank - 2], type.dims[rank - 1]));
  GraphBuilder& b = n.b();
  Value diagonal = at.row;
  if (n.has_input(1) && n.ConstantInput(1) == nullptr) {
    if (n.type(1).elements() != 1) return n.Error("k must be one number");
    diagonal = at.row + ReshapeExactly(Cast(n[1], DType::kI64), {});
  } else if (n.has_input(1)) {
    RIDGE_ASSIGN_OR_RETURN(const int64_t k, n.ConstantInt(1, "k"));
    diagonal = at.row + Diagonal(k);
  }
  const bool upper = n.integer("upper", 1) != 0;
  const Value kept = Op(upper ? "greater_equal" : "less_equal", {at.column, diagonal});
  const Value zero = b.Scalar(type.dtype, 0);
  return Where(kept, n[0], zero);
}

namespace {

Result<int64_t> OneHotDepth(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(3));
  RIDGE_ASSIGN_OR_RETURN(const int64_t depth, n.ConstantInt(1, "depth"));
  if (depth < 0) return n.Error(fmt::format("depth is {}; it must not be negative", depth));
  if (n.dims(2) != Dims{2}) {
    return n.Error(fmt::format("values is {}; it must have two elements", TypeToString(n.type(2))));
  }
  return depth;
}

}  // namespace

// y = number == index ? on : off, with the numbers 0 to depth - 1 along `axis`.
Result<Value> ConvertOneHot(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const int64_t depth, OneHotDepth(n));
  Dims dims = n.dims(0);
  RIDGE_ASSIGN_OR_RETURN(const int64_t axis,
                         n.Axis(n.integer("axis", -1), static_cast<int>(dims.size()) + 1));
  RIDGE_ASSIGN_OR_RETURN(const Value iota, OnnxIota(n, depth));
  GraphBuilder& b = n.b();
  const Value index = Cast(n[0], DType::kI64);
  const Value negative = index < b.Scalar(DType::kI64, 0);
  const Value place = Where(negative, index + static_cast<double>(depth), index);
  if (!n.ok()) return n.status();
  dims.insert(dims.begin() + axis, 1);
  Dims along(dims.size(), 1);
  along[static_cast<size_t>(axis)] = depth;
  const Value places = ReshapeExactly(place, dims);
  const Value hot = Equal(places, ReshapeExactly(iota, along));
  const Value off = ReshapeExactly(Slice(n[2], 0, 0, 1, 1), {});
  const Value on = ReshapeExactly(Slice(n[2], 0, 1, 2, 1), {});
  return Where(hot, on, off);
}

}  // namespace ridge
