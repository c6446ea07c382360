#include "ridge/graph/onnx/tensor.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <memory>
#include <vector>

#include "onnx/onnx-ml.pb.h"
#include "ridge/graph/onnx/external_data.h"

namespace ridge {
namespace {

constexpr int64_t kMostDenseElements = int64_t{1} << 26;

struct TypePair {
  int onnx;
  DType ours;
};
constexpr TypePair kTypes[] = {
    {onnx::TensorProto::FLOAT, DType::kF32},   {onnx::TensorProto::DOUBLE, DType::kF64},
    {onnx::TensorProto::FLOAT16, DType::kF16}, {onnx::TensorProto::BFLOAT16, DType::kBF16},
    {onnx::TensorProto::INT64, DType::kI64},   {onnx::TensorProto::INT32, DType::kI32},
    {onnx::TensorProto::UINT8, DType::kU8},    {onnx::TensorProto::INT8, DType::kI8},
    {onnx::TensorProto::BOOL, DType::kBool},
};

Status Refuse(const std::string& name, const std::string& text) {
  return Status(ErrorCode::kInvalidModel, fmt::format("tensor '{}': {}", name, text));
}

Result<TensorType> TypeOf(const onnx::TensorProto& proto) {
  const std::optional<DType> dtype = DTypeFromOnnx(proto.data_type());
  if (!dtype) {
    return Status(ErrorCode::kUnsupported,
                  fmt::format("tensor '{}': elements are {}, which ridge does not hold",
                              proto.name(), OnnxTypeName(proto.data_type())));
  }
  const Dims dims(proto.dims().begin(), proto.dims().end());
  if (Status status = CheckDims(dims); !status.ok()) return Refuse(proto.name(), status.message());
  return TensorType{*dtype, dims};
}

Status WrongSize(const onnx::TensorProto& proto, const TensorType& type, int64_t bytes) {
  return Refuse(proto.name(), fmt::format("holds {} bytes; {} needs {}", bytes, TypeToString(type),
                                          type.bytes()));
}

// "offset" and "length" of external data; unknown keys are ignored, as ONNX says.
Result<Tensor> MapExternal(const onnx::TensorProto& proto, const TensorType& type,
                           const std::string& folder) {
  if (folder.empty()) return Refuse(proto.name(), "has external data, and no folder is known");
  std::string location;
  int64_t offset = 0, length = -1;
  for (const onnx::StringStringEntryProto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() != "offset" && entry.key() != "length") continue;
    int64_t& number = entry.key() == "offset" ? offset : length;
    const char* end = entry.value().data() + entry.value().size();
    const auto [at, error] = std::from_chars(entry.value().data(), end, number);
    if (error != std::errc() || at != end || number < 0) {
      return Refuse(proto.name(), fmt::format("external {} is '{}'; it must be a number of bytes",
                                              entry.key(), entry.value()));
    }
  }
  if (length >= 0 && length != type.bytes()) return WrongSize(proto, type, length);
  Result<MappedBytes> bytes = MapBeneath(folder, location, offset, type.bytes());
  if (!bytes.ok()) return Refuse(proto.name(), bytes.status().message());
  return Tensor(type, bytes->data, std::move(bytes->owner));
}

// Typed fields: one number an element.
template <typename Field>
Result<Tensor> FromField(const onnx::TensorProto& proto, const TensorType& type,
                         const Field& field) {
  if (field.size() != type.elements()) {
    return Refuse(proto.name(), fmt::format("holds {} numbers; {} needs {}", field.size(),
                                            TypeToString(type), type.elements()));
  }
  Tensor tensor(type);
  for (int i = 0; i < field.size(); ++i) {
    if (type.dtype == DType::kF16 || type.dtype == DType::kBF16) {
      tensor.as_mutable<uint16_t>()[i] = static_cast<uint16_t>(field[i]);  // the bits
    } else if (type.dtype == DType::kI64) {
      tensor.as_mutable<int64_t>()[i] = static_cast<int64_t>(field[i]);
    } else {
      StoreFromDouble(type.dtype, tensor.mutable_data(), i, static_cast<double>(field[i]));
    }
  }
  return tensor;
}

Result<Tensor> FromFields(const onnx::TensorProto& proto, const TensorType& type) {
  switch (type.dtype) {
    case DType::kF32:
      return FromField(proto, type, proto.float_data());
    case DType::kF64:
      return FromField(proto, type, proto.double_data());
    case DType::kI64:
      return FromField(proto, type, proto.int64_data());
    default:
      return FromField(proto, type, proto.int32_data());
  }
}

// REQUIRES: `bytes` holds type.bytes() bytes.
Tensor Adopt(const TensorType& type, std::shared_ptr<std::string> bytes) {
  const void* data = bytes->data();
  return Tensor(type, data, std::move(bytes));
}

}  // namespace

std::optional<DType> DTypeFromOnnx(int data_type) {
  for (const TypePair& pair : kTypes) {
    if (pair.onnx == data_type) return pair.ours;
  }
  return std::nullopt;
}

int OnnxFromDType(DType dtype) {
  for (const TypePair& pair : kTypes) {
    if (pair.ours == dtype) return pair.onnx;
  }
  return onnx::TensorProto::UNDEFINED;
}

const char* OnnxTypeName(int data_type) {
  if (!onnx::TensorProto::DataType_IsValid(data_type)) return "of an unknown type";
  return onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(data_type))
      .c_str();
}

Result<Tensor> TakeTensor(onnx::TensorProto& proto, const std::string& folder) {
  RIDGE_ASSIGN_OR_RETURN(const TensorType type, TypeOf(proto));
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) return MapExternal(proto, type, folder);
  if (!proto.has_raw_data()) {
    RIDGE_ASSIGN_OR_RETURN(const Tensor tensor, FromFields(proto, type));
    proto.clear_float_data();
    proto.clear_double_data();
    proto.clear_int32_data();
    proto.clear_int64_data();
    return tensor;
  }
  const auto bytes = static_cast<int64_t>(proto.raw_data().size());
  if (bytes != type.bytes()) return WrongSize(proto, type, bytes);
  return Adopt(type, std::shared_ptr<std::string>(proto.release_raw_data()));
}

Result<Tensor> CopyTensor(const onnx::TensorProto& proto, const std::string& folder) {
  RIDGE_ASSIGN_OR_RETURN(const TensorType type, TypeOf(proto));
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) return MapExternal(proto, type, folder);
  if (!proto.has_raw_data()) return FromFields(proto, type);
  const auto bytes = static_cast<int64_t>(proto.raw_data().size());
  if (bytes != type.bytes()) return WrongSize(proto, type, bytes);
  return Adopt(type, std::make_shared<std::string>(proto.raw_data()));
}

Result<Tensor> DenseTensor(const onnx::SparseTensorProto& proto) {
  RIDGE_ASSIGN_OR_RETURN(const Tensor values, CopyTensor(proto.values(), ""));
  RIDGE_ASSIGN_OR_RETURN(const Tensor indices, CopyTensor(proto.indices(), ""));
  const std::string& name = proto.values().name();
  const TensorType type{values.type().dtype, Dims(proto.dims().begin(), proto.dims().end())};
  if (Status status = CheckDims(type.dims); !status.ok()) return Refuse(name, status.message());
  if (type.elements() > kMostDenseElements) {
    return Refuse(name, fmt::format("is sparse with {} elements; at most {} are held",
                                    type.elements(), kMostDenseElements));
  }
  const int64_t count = values.elements(), rank = type.rank();
  const bool flat = indices.type().dims == Dims{count};
  if (indices.type().dtype != DType::kI64 || (!flat && indices.type().dims != Dims{count, rank})) {
    return Refuse(name, fmt::format("its indices are {}; they must be i64[{}] or i64[{},{}]",
                                    TypeToString(indices.type()), count, count, rank));
  }
  Tensor dense(type);
  const Dims strides = RowMajorStrides(type.dims);
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = flat ? indices.as<int64_t>()[i] : 0;
    bool inside = true;
    for (int64_t d = 0; !flat && d < rank; ++d) {
      const int64_t k = indices.as<int64_t>()[i * rank + d];
      inside = inside && k >= 0 && k < type.dims[static_cast<size_t>(d)];
      if (inside) at += k * strides[static_cast<size_t>(d)];
    }
    if (!inside || at < 0 || at >= type.elements())
      return Refuse(name, fmt::format("index {} lies outside {}", i, TypeToString(type)));
    StoreFromDouble(type.dtype, dense.mutable_data(), at, values.at(i));
  }
  return dense;
}

void StoreTensor(const Tensor& tensor, const std::string& name, onnx::TensorProto& proto) {
  proto.Clear();
  proto.set_name(name);
  proto.set_data_type(OnnxFromDType(tensor.type().dtype));
  for (int64_t extent : tensor.type().dims) proto.add_dims(extent);
  proto.set_raw_data(tensor.data(), static_cast<size_t>(tensor.bytes()));
}

}  // namespace ridge
