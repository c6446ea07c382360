// SparseTensorProto: values [N] and their places, either [N] places in the flattened tensor or
// [N, rank] indices.
#include <fmt/format.h>

#include <cstring>

#include "onnx/onnx-ml.pb.h"
#include "ridge/onnx/file/tensor.h"

namespace ridge {
namespace {

Status Bad(const onnx::SparseTensorProto& proto, const std::string& text) {
  return Status(ErrorCode::kInvalidModel,
                fmt::format("sparse tensor '{}': {}", proto.values().name().substr(0, 200), text));
}

Result<TensorType> DenseType(const onnx::SparseTensorProto& proto, const Tensor& values,
                             int64_t max_bytes) {
  const TensorType type{values.type().dtype, {proto.dims().begin(), proto.dims().end()}};
  if (const Status status = CheckDims(type.dims); !status.ok()) return Bad(proto, status.message());
  if (values.type().rank() != 1) {
    return Bad(proto, fmt::format("its values have rank {}; it must be 1", values.type().rank()));
  }
  if (type.bytes() > max_bytes) {
    return Bad(proto, fmt::format("{} has {} bytes when dense; at most {} are allowed",
                                  TypeToString(type), type.bytes(), max_bytes));
  }
  return type;
}

// The place of value `k` in the flattened tensor; -1 when it is outside.
int64_t Place(const Tensor& indices, const Dims& dims, int64_t k) {
  const int64_t* at = indices.as<int64_t>();
  if (indices.type().rank() == 1) return at[k] < ElementCount(dims) ? at[k] : -1;
  const auto rank = static_cast<int64_t>(dims.size());
  int64_t place = 0;
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t index = at[k * rank + axis];
    const int64_t extent = dims[static_cast<size_t>(axis)];
    if (index < 0 || index >= extent) return -1;
    place = place * extent + index;
  }
  return place;
}

Status CheckIndices(const onnx::SparseTensorProto& proto, const Tensor& indices, int64_t count) {
  const Dims flat = {count}, full = {count, proto.dims_size()};
  const TensorType& type = indices.type();
  if (type.dtype == DType::kI64 && (type.dims == flat || type.dims == full)) return Status();
  return Bad(proto, fmt::format("its indices are {}; they must be i64{} or i64{}",
                                TypeToString(type), DimsToString(flat), DimsToString(full)));
}

}  // namespace

Result<Tensor> DenseTensor(const onnx::SparseTensorProto& proto, int64_t max_bytes) {
  RIDGE_ASSIGN_OR_RETURN(const Tensor values, CopyTensor(proto.values(), ""));
  RIDGE_ASSIGN_OR_RETURN(const Tensor indices, CopyTensor(proto.indices(), ""));
  RIDGE_ASSIGN_OR_RETURN(const TensorType type, DenseType(proto, values, max_bytes));
  RIDGE_RETURN_IF_ERROR(CheckIndices(proto, indices, values.elements()));
  Tensor dense(type);
  const auto width = static_cast<size_t>(BytesPerElement(type.dtype));
  for (int64_t k = 0; k < values.elements(); ++k) {
    const int64_t place = Place(indices, type.dims, k);
    if (place < 0) {
      return Bad(proto, fmt::format("value {} lies outside of {}", k, DimsToString(type.dims)));
    }
    std::memcpy(static_cast<char*>(dense.mutable_data()) + static_cast<size_t>(place) * width,
                static_cast<const char*>(values.data()) + static_cast<size_t>(k) * width, width);
  }
  return dense;
}

}  // namespace ridge
