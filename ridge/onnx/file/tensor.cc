// A TensorProto holds its numbers in raw_data, in one of five typed fields, or in another file.
// All three come to "stored bytes": little-endian numbers, those below 8 bits packed from the low
// bits up.  Sizes are compared before anything is allocated.
#include "ridge/onnx/file/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <new>

#include "onnx/onnx-ml.pb.h"

namespace ridge {
namespace {

using onnx::TensorProto;

struct OnnxType {
  const char* onnx;
  const char* ours;  // nullptr: we do not hold it
  int bits;          // of one element in raw_data; 0 for strings
};

// By TensorProto.DataType.
constexpr std::array<OnnxType, 29> kTypes = {{
    {"UNDEFINED", nullptr, 0},
    {"FLOAT", "f32", 32},
    {"UINT8", "u8", 8},
    {"INT8", "i8", 8},
    {"UINT16", "u16", 16},
    {"INT16", "i16", 16},
    {"INT32", "i32", 32},
    {"INT64", "i64", 64},
    {"STRING", nullptr, 0},
    {"BOOL", "bool", 8},
    {"FLOAT16", "f16", 16},
    {"DOUBLE", "f64", 64},
    {"UINT32", "u32", 32},
    {"UINT64", "u64", 64},
    {"COMPLEX64", nullptr, 64},
    {"COMPLEX128", nullptr, 128},
    {"BFLOAT16", "bf16", 16},
    {"FLOAT8E4M3FN", "f8e4m3fn", 8},
    {"FLOAT8E4M3FNUZ", "f8e4m3fnuz", 8},
    {"FLOAT8E5M2", "f8e5m2", 8},
    {"FLOAT8E5M2FNUZ", "f8e5m2fnuz", 8},
    {"UINT4", "u4", 4},
    {"INT4", "i4", 4},
    {"FLOAT4E2M1", "f4e2m1", 4},
    {"FLOAT8E8M0", "f8e8m0", 8},
    {"UINT2", "u2", 2},
    {"INT2", "i2", 2},
    {"FLOAT6E2M3", nullptr, 6},
    {"FLOAT6E3M2", nullptr, 6},
}};

bool Known(int data_type) {
  return data_type >= 0 && static_cast<size_t>(data_type) < kTypes.size();
}

const OnnxType& Facts(int data_type) {
  return kTypes[Known(data_type) ? static_cast<size_t>(data_type) : 0];
}

std::string Where(const TensorProto& proto) {
  return fmt::format("tensor '{}'", proto.name().substr(0, 200));
}

Status Bad(const TensorProto& proto, const std::string& text) {
  return Status(ErrorCode::kInvalidModel, Where(proto) + ": " + text);
}

// What a TensorProto says of itself, checked.
struct Header {
  TensorType type;
  int data_type = 0;
  int bits = 0;
  int64_t stored_bytes = 0;  // packed

  bool packed() const { return bits < 8; }
};

std::string HeaderText(const Header& header) {
  return OnnxTypeName(header.data_type) + DimsToString(header.type.dims);
}

Result<Header> ReadHeader(const TensorProto& proto) {
  Header header;
  header.data_type = proto.data_type();
  const std::optional<DType> dtype = DTypeFromOnnx(proto.data_type());
  if (!dtype && Known(proto.data_type()) && proto.data_type() != TensorProto::UNDEFINED) {
    return Status(ErrorCode::kUnsupported,
                  fmt::format("{}: its element type is {}, which we do not hold", Where(proto),
                              OnnxTypeName(proto.data_type())));
  }
  if (!dtype) {
    return Bad(proto, fmt::format("its element type is {}; ONNX knows 1 to {}", proto.data_type(),
                                  kTypes.size() - 1));
  }
  if (proto.has_segment()) return Bad(proto, "is a segment; segments were never given a meaning");
  header.type = {*dtype, {proto.dims().begin(), proto.dims().end()}};
  if (const Status status = CheckDims(header.type.dims); !status.ok()) {
    return Bad(proto, status.message());
  }
  header.bits = Facts(header.data_type).bits;
  header.stored_bytes = header.packed() ? (header.type.elements() * header.bits + 7) / 8
                                        : header.type.elements() * (header.bits / 8);
  return header;
}

// One number to a byte, from the low bits up; signed ones with their sign.
Tensor Unpack(const Header& header, const uint8_t* stored) {
  Tensor tensor(header.type);
  auto* out = tensor.as_mutable<uint8_t>();
  const int per_byte = 8 / header.bits;
  const auto mask = static_cast<uint8_t>((1 << header.bits) - 1);
  const auto sign = static_cast<uint8_t>(1 << (header.bits - 1));
  const bool is_signed =
      header.data_type == TensorProto::INT4 || header.data_type == TensorProto::INT2;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const int shift = static_cast<int>(i % per_byte) * header.bits;
    auto value = static_cast<uint8_t>((stored[i / per_byte] >> shift) & mask);
    if (is_signed && (value & sign) != 0) value = static_cast<uint8_t>(value | ~mask);
    out[i] = value;
  }
  return tensor;
}

Tensor CopyOf(const TensorType& type, const void* bytes) {
  Tensor tensor(type);
  if (tensor.bytes() > 0) std::memcpy(tensor.mutable_data(), bytes, tensor.bytes());
  return tensor;
}

bool Aligned(const void* bytes, DType dtype) {
  return reinterpret_cast<uintptr_t>(bytes) % static_cast<uintptr_t>(BytesPerElement(dtype)) == 0;
}

// Kernels read bools as bytes that are 0 or 1.
bool HasOddBools(const Header& header, const void* bytes) {
  if (header.type.dtype != DType::kBool) return false;
  const auto* at = static_cast<const uint8_t*>(bytes);
  return std::any_of(at, at + header.type.elements(), [](uint8_t b) { return b > 1; });
}

Tensor CleanBools(const Header& header, const void* bytes) {
  Tensor tensor = CopyOf(header.type, bytes);
  auto* at = tensor.as_mutable<uint8_t>();
  for (int64_t i = 0; i < tensor.elements(); ++i) at[i] = at[i] != 0 ? 1 : 0;
  return tensor;
}

// Adopts stored bytes where they can be read as they are.
Tensor Adopt(const Header& header, const void* bytes, std::shared_ptr<const void> owner) {
  if (header.packed()) return Unpack(header, static_cast<const uint8_t*>(bytes));
  if (HasOddBools(header, bytes)) return CleanBools(header, bytes);
  if (header.type.elements() == 0 || !Aligned(bytes, header.type.dtype)) {
    return CopyOf(header.type, bytes);
  }
  return Tensor(header.type, bytes, std::move(owner));
}

Status CheckStored(const TensorProto& proto, const Header& header, int64_t bytes) {
  if (bytes == header.stored_bytes) return Status();
  return Bad(proto, fmt::format("holds {} bytes; {} needs {}", bytes, HeaderText(header),
                                header.stored_bytes));
}

Result<int64_t> ParseNumber(const TensorProto& proto, const std::string& key,
                            const std::string& text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && at == end && value >= 0) return value;
  return Bad(proto, fmt::format("'{}' of its external data is '{}'; it must be a number of bytes",
                                key, text.substr(0, 40)));
}

// Keys that we do not know are ignored: they must never steer anything.
Result<ExternalRange> ReadRange(const TensorProto& proto) {
  ExternalRange range;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") range.location = entry.value();
    if (entry.key() == "offset") {
      RIDGE_ASSIGN_OR_RETURN(range.offset_bytes, ParseNumber(proto, "offset", entry.value()));
    }
    if (entry.key() == "length") {
      RIDGE_ASSIGN_OR_RETURN(range.length_bytes, ParseNumber(proto, "length", entry.value()));
    }
  }
  if (range.location.empty()) return Bad(proto, "its external data has no 'location'");
  return range;
}

// Bools are looked at: a file may hold odd ones.
bool MayStayInFile(const Header& header) {
  return header.stored_bytes >= kStaysInFileFrom && !header.packed() &&
         header.type.dtype != DType::kBool;
}

Result<Tensor> ReadStored(const Header& header, const std::function<Status(void* to)>& read) {
  constexpr std::align_val_t kAlignment{64};  // as Tensor has
  const auto size = static_cast<size_t>(std::max<int64_t>(header.stored_bytes, 1));
  const std::shared_ptr<void> stored(::operator new(size, kAlignment),
                                     [](void* p) { ::operator delete(p, kAlignment); });
  RIDGE_RETURN_IF_ERROR(read(stored.get()));
  return Adopt(header, stored.get(), stored);
}

Result<Tensor> ReadFromFile(const Header& header, const TensorFile& file, int64_t offset) {
  return ReadStored(header, [&](void* to) { return file.Read(offset, header.stored_bytes, to); });
}

Result<Tensor> ReadExternal(const TensorProto& proto, const Header& header, ExternalFiles& files,
                            bool may_stay) {
  RIDGE_ASSIGN_OR_RETURN(const ExternalRange range, ReadRange(proto));
  RIDGE_ASSIGN_OR_RETURN(const ExternalPlace place,
                         files.Find(range, header.stored_bytes, Where(proto)));
  if (may_stay && place.stays_open && MayStayInFile(header))
    return TensorInFile(header.type, place.file, place.offset_bytes);
  RIDGE_RETURN_IF_ERROR(files.SpendCopy(range, header.type.bytes(), Where(proto)));
  return ReadFromFile(header, *place.file, place.offset_bytes);
}

Status CheckCount(const TensorProto& proto, const Header& header, int64_t count, int64_t wanted) {
  if (count == wanted) return Status();
  return Bad(proto,
             fmt::format("holds {} numbers; {} needs {}", count, HeaderText(header), wanted));
}

// One field entry for one number, narrowed as C does: f16 and f8 come as their bits.
template <typename To, typename Field>
Result<Tensor> Narrow(const TensorProto& proto, const Header& header, const Field& field) {
  RIDGE_RETURN_IF_ERROR(CheckCount(proto, header, field.size(), header.type.elements()));
  Tensor tensor(header.type);
  auto* out = tensor.template as_mutable<To>();
  for (int i = 0; i < field.size(); ++i) out[i] = static_cast<To>(field[i]);
  return tensor;
}

Result<Tensor> FromBools(const TensorProto& proto, const Header& header) {
  RIDGE_RETURN_IF_ERROR(CheckCount(proto, header, proto.int32_data_size(), header.type.elements()));
  Tensor tensor(header.type);
  auto* out = tensor.as_mutable<uint8_t>();
  for (int i = 0; i < proto.int32_data_size(); ++i) out[i] = proto.int32_data(i) != 0 ? 1 : 0;
  return tensor;
}

// int32_data holds one packed byte an entry.
Result<Tensor> FromPacked(const TensorProto& proto, const Header& header) {
  RIDGE_RETURN_IF_ERROR(CheckCount(proto, header, proto.int32_data_size(), header.stored_bytes));
  std::string stored;
  for (const int32_t byte : proto.int32_data()) stored.push_back(static_cast<char>(byte));
  return Unpack(header, reinterpret_cast<const uint8_t*>(stored.data()));
}

Result<Tensor> FromTyped(const TensorProto& proto, const Header& header) {
  switch (header.data_type) {
    case TensorProto::FLOAT:
      return Narrow<float>(proto, header, proto.float_data());
    case TensorProto::DOUBLE:
      return Narrow<double>(proto, header, proto.double_data());
    case TensorProto::INT64:
      return Narrow<int64_t>(proto, header, proto.int64_data());
    case TensorProto::UINT64:
      return Narrow<uint64_t>(proto, header, proto.uint64_data());
    case TensorProto::UINT32:
      return Narrow<uint32_t>(proto, header, proto.uint64_data());
    case TensorProto::BOOL:
      return FromBools(proto, header);
    default:
      break;
  }
  if (header.packed()) return FromPacked(proto, header);
  if (header.bits == 32) return Narrow<int32_t>(proto, header, proto.int32_data());
  if (header.bits == 16) return Narrow<uint16_t>(proto, header, proto.int32_data());
  return Narrow<uint8_t>(proto, header, proto.int32_data());
}

void ClearTyped(TensorProto& proto) {
  TensorProto empty;  // swapped rather than cleared: a cleared field keeps its memory
  proto.mutable_float_data()->Swap(empty.mutable_float_data());
  proto.mutable_int32_data()->Swap(empty.mutable_int32_data());
  proto.mutable_int64_data()->Swap(empty.mutable_int64_data());
  proto.mutable_double_data()->Swap(empty.mutable_double_data());
  proto.mutable_uint64_data()->Swap(empty.mutable_uint64_data());
}

}  // namespace

std::optional<DType> DTypeFromOnnx(int data_type) {
  const char* name = Facts(data_type).ours;
  if (name == nullptr) return std::nullopt;
  return ParseDType(name);
}

int OnnxFromDType(DType dtype) {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].ours != nullptr && std::strcmp(kTypes[i].ours, DTypeName(dtype)) == 0) {
      return static_cast<int>(i);
    }
  }
  RIDGE_CHECK(false, fmt::format("{} has no ONNX type", DTypeName(dtype)));
}

const char* OnnxTypeName(int data_type) { return Facts(data_type).onnx; }

Result<Tensor> TakeTensor(TensorProto& proto, ExternalFiles& files) {
  RIDGE_ASSIGN_OR_RETURN(const Header header, ReadHeader(proto));
  if (proto.data_location() == TensorProto::EXTERNAL) {
    return ReadExternal(proto, header, files, /*may_stay=*/true);
  }
  if (proto.has_raw_data()) {
    RIDGE_RETURN_IF_ERROR(
        CheckStored(proto, header, static_cast<int64_t>(proto.raw_data().size())));
    const std::shared_ptr<const std::string> bytes(proto.release_raw_data());
    return Adopt(header, bytes->data(), bytes);
  }
  RIDGE_ASSIGN_OR_RETURN(Tensor tensor, FromTyped(proto, header));
  ClearTyped(proto);
  return tensor;
}

Result<Tensor> ReadTensor(const TensorProto& proto, int64_t bytes,
                          const std::function<Status(void* to)>& read) {
  RIDGE_ASSIGN_OR_RETURN(const Header header, ReadHeader(proto));
  RIDGE_RETURN_IF_ERROR(CheckStored(proto, header, bytes));
  return ReadStored(header, read);
}

Result<Tensor> TensorOfFile(const TensorProto& proto, const std::shared_ptr<const TensorFile>& file,
                            int64_t offset, int64_t bytes) {
  RIDGE_ASSIGN_OR_RETURN(const Header header, ReadHeader(proto));
  RIDGE_RETURN_IF_ERROR(CheckStored(proto, header, bytes));
  if (MayStayInFile(header)) return TensorInFile(header.type, file, offset);
  return ReadFromFile(header, *file, offset);
}

Result<Tensor> CopyTensor(const TensorProto& proto, const std::string& folder) {
  ExternalFiles files(folder);
  return CopyTensor(proto, files);
}

Result<Tensor> CopyTensor(const TensorProto& proto, ExternalFiles& files) {
  RIDGE_ASSIGN_OR_RETURN(const Header header, ReadHeader(proto));
  if (proto.data_location() == TensorProto::EXTERNAL)
    return ReadExternal(proto, header, files, /*may_stay=*/false);
  if (!proto.has_raw_data()) return FromTyped(proto, header);
  RIDGE_RETURN_IF_ERROR(CheckStored(proto, header, static_cast<int64_t>(proto.raw_data().size())));
  if (header.packed() || HasOddBools(header, proto.raw_data().data())) {
    return Adopt(header, proto.raw_data().data(), nullptr);
  }
  return CopyOf(header.type, proto.raw_data().data());
}

void StoreTensor(const Tensor& tensor, const std::string& name, TensorProto& proto) {
  const int data_type = OnnxFromDType(tensor.type().dtype);
  proto.set_name(name);
  proto.set_data_type(data_type);
  proto.clear_dims();
  for (const int64_t extent : tensor.type().dims) proto.add_dims(extent);
  const int bits = Facts(data_type).bits;
  std::string* raw = proto.mutable_raw_data();
  if (bits >= 8) {
    raw->assign(static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes()));
    return;
  }
  const int per_byte = 8 / bits;
  raw->assign(static_cast<size_t>((tensor.elements() + per_byte - 1) / per_byte), '\0');
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const int code = tensor.as<uint8_t>()[i] & ((1 << bits) - 1);
    char& byte = (*raw)[static_cast<size_t>(i / per_byte)];
    byte = static_cast<char>(byte | (code << (i % per_byte * bits)));
  }
}

}  // namespace ridge
