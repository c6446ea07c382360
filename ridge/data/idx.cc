// The header is checked against the file's size before anything of that size is allocated; then the
// elements are decompressed straight into the tensor and turned to little-endian in place.
#include "ridge/data/idx.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <span>

#include "ridge/data/byte_stream.h"
#include "ridge/data/memory_source.h"

namespace ridge {
namespace {

constexpr uint32_t kImageMagic = 0x00000803;  // u8, three extents
constexpr uint32_t kLabelMagic = 0x00000801;  // u8, one extent

struct IdxHeader {
  uint32_t magic = 0;
  int64_t element_bytes = 1;  // in the file
  TensorType type;
};

Status BadData(const std::string& where, const std::string& what) {
  return Status(ErrorCode::kInvalidData, where + ": " + what);
}

uint32_t BigEndian32(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

std::optional<DType> ElementType(uint32_t code) {
  switch (code) {
    case 0x08:
      return DType::kU8;
    case 0x09:
      return DType::kI8;
    case 0x0B:
      return DType::kI32;  // i16 in the file; the engine has no i16
    case 0x0C:
      return DType::kI32;
    case 0x0D:
      return DType::kF32;
    case 0x0E:
      return DType::kF64;
    default:
      return std::nullopt;
  }
}

std::string Meaning(uint32_t magic) {
  if (magic == kImageMagic) return " (images)";
  if (magic == kLabelMagic) return " (labels)";
  return "";
}

// `magic` is what the caller wants, or nothing for any.
Status CheckMagic(const std::string& where, uint32_t is, std::optional<uint32_t> wanted) {
  if (wanted && is != *wanted) {
    return BadData(where, fmt::format("its magic number is 0x{:08x}{}, should be 0x{:08x}{}", is,
                                      Meaning(is), *wanted, Meaning(*wanted)));
  }
  if (is >> 16 == 0 && ElementType(is >> 8)) return Status();
  return BadData(where, fmt::format("is not an IDX file: its magic number is 0x{:08x}, should be "
                                    "0x0000TTNN with type TT 08, 09, 0b, 0c, 0d or 0e",
                                    is));
}

Status ReadHeaderBytes(ByteStream& stream, std::span<uint8_t> to) {
  RIDGE_ASSIGN_OR_RETURN(const int64_t got,
                         stream.Read(to.data(), static_cast<int64_t>(to.size())));
  if (got == static_cast<int64_t>(to.size())) return Status();
  return BadData(stream.name(), "is cut off: it ends inside the IDX header");
}

Result<IdxHeader> ReadHeader(ByteStream& stream, std::optional<uint32_t> wanted_magic) {
  std::array<uint8_t, 4> word{};
  RIDGE_RETURN_IF_ERROR(ReadHeaderBytes(stream, word));
  IdxHeader header;
  header.magic = BigEndian32(word.data());
  RIDGE_RETURN_IF_ERROR(CheckMagic(stream.name(), header.magic, wanted_magic));
  const uint32_t code = header.magic >> 8;
  header.type.dtype = *ElementType(code);
  header.element_bytes = code == 0x0B ? 2 : BytesPerElement(header.type.dtype);
  for (uint32_t i = 0; i < (header.magic & 0xFF); ++i) {
    RIDGE_RETURN_IF_ERROR(ReadHeaderBytes(stream, word));
    header.type.dims.push_back(static_cast<int32_t>(BigEndian32(word.data())));
  }
  if (const Status status = CheckDims(header.type.dims); !status.ok())
    return BadData(stream.name(), "its header is wrong: " + status.message());
  return header;
}

Status CheckBound(const ByteStream& stream, const IdxHeader& header) {
  const int64_t declared = header.type.elements() * header.element_bytes;
  if (declared <= stream.bound_bytes()) return Status();
  return BadData(stream.name(),
                 fmt::format("its header declares {}, {} bytes, the file can hold at "
                             "most {}",
                             TypeToString(header.type), declared, stream.bound_bytes()));
}

// Big-endian elements of `bytes` bytes to this machine's order (little-endian), in place.
void SwapElements(uint8_t* data, int64_t count, int64_t bytes) {
  if (bytes == 1) return;
  for (int64_t i = 0; i < count; ++i) std::reverse(data + i * bytes, data + (i + 1) * bytes);
}

// i16 to i32 in place, from the last element down: each is read before its place is written.
void WidenI16(uint8_t* data, int64_t count) {
  auto* wide = reinterpret_cast<int32_t*>(data);
  for (int64_t i = count - 1; i >= 0; --i) {
    const auto low = data[2 * i];
    const auto high = static_cast<int8_t>(data[2 * i + 1]);
    wide[i] = high * 256 + low;
  }
}

Result<Tensor> ReadElements(ByteStream& stream, const IdxHeader& header) {
  RIDGE_RETURN_IF_ERROR(CheckBound(stream, header));
  RIDGE_ASSIGN_OR_RETURN(Tensor tensor, MakeTensor(stream.name(), header.type));
  const int64_t wanted = header.type.elements() * header.element_bytes;
  auto* data = tensor.as_mutable<uint8_t>();
  RIDGE_ASSIGN_OR_RETURN(const int64_t got, stream.Read(data, wanted));
  if (got != wanted) {
    return BadData(stream.name(),
                   fmt::format("is cut off: its header declares {}, {} bytes, but {} "
                               "follow",
                               TypeToString(header.type), wanted, got));
  }
  RIDGE_RETURN_IF_ERROR(stream.ExpectEnd());
  SwapElements(data, header.type.elements(), header.element_bytes);
  if (header.element_bytes == 2) WidenI16(data, header.type.elements());
  return tensor;
}

Result<Tensor> ReadIdxOf(const std::string& path, std::optional<uint32_t> magic) {
  RIDGE_ASSIGN_OR_RETURN(const auto stream, ByteStream::Open(path));
  RIDGE_ASSIGN_OR_RETURN(const IdxHeader header, ReadHeader(*stream, magic));
  return ReadElements(*stream, header);
}

// The first of the four spellings that is there, or "".
std::string FindIdxFile(const std::string& folder, const std::string& stem, const char* kind) {
  for (const char* mark : {"-", "."}) {
    for (const char* ending : {"", ".gz"}) {
      const std::string path = folder + "/" + stem + mark + kind + "-ubyte" + ending;
      std::error_code ignored;
      if (std::filesystem::exists(path, ignored)) return path;
    }
  }
  return "";
}

struct IdxPair {
  std::string images;  // paths, "" when missing
  std::string labels;
};

IdxPair FindPair(const std::string& folder, const std::string& split) {
  return {FindIdxFile(folder, split + "-images", "idx3"),
          FindIdxFile(folder, split + "-labels", "idx1")};
}

Status CheckComplete(const std::string& name, const std::string& split, const IdxPair& pair) {
  if (!pair.images.empty() && !pair.labels.empty()) return Status();
  const std::string missing =
      split + (pair.images.empty() ? "-images-idx3-ubyte" : "-labels-idx1-ubyte");
  return BadData(name, fmt::format("there is no {} (nor .gz) in the folder", missing));
}

Result<SourcePtr> OpenPair(const std::string& name, const IdxPair& pair) {
  RIDGE_ASSIGN_OR_RETURN(Tensor images, ReadIdxOf(pair.images, kImageMagic));
  RIDGE_ASSIGN_OR_RETURN(Tensor labels, ReadIdxOf(pair.labels, kLabelMagic));
  const int64_t image_count = images.type().dims[0];
  const int64_t label_count = labels.type().dims[0];
  if (image_count != label_count) {
    return BadData(name, fmt::format("{} holds {} images, {} holds {} labels; they must be equal",
                                     pair.images, image_count, pair.labels, label_count));
  }
  if (image_count == 0) return BadData(pair.images, "holds 0 samples, at least 1 is needed");
  if (images.elements() == 0) {
    return BadData(pair.images,
                   fmt::format("its images are empty: {}", TypeToString(images.type())));
  }
  std::vector<NamedTensor> fields;
  fields.emplace_back("image", std::move(images));
  fields.emplace_back("label", std::move(labels));
  return MemorySource::Create(name, std::move(fields));
}

Status CheckFolder(const std::string& name, const std::string& folder, const std::string& hint) {
  std::error_code ignored;
  if (std::filesystem::is_directory(folder, ignored)) return Status();
  return BadData(name, "there is no folder " + folder + hint);
}

}  // namespace

Result<Tensor> ReadIdx(const std::string& path) { return ReadIdxOf(path, std::nullopt); }

Result<DataSplits> OpenIdxFolder(const std::string& name, const std::string& folder) {
  RIDGE_RETURN_IF_ERROR(CheckFolder(name, folder, ""));
  const IdxPair train = FindPair(folder, "train");
  const IdxPair test = FindPair(folder, "t10k");
  RIDGE_RETURN_IF_ERROR(CheckComplete(name, "train", train));
  DataSplits splits;
  RIDGE_ASSIGN_OR_RETURN(splits.train, OpenPair(name, train));
  if (test.images.empty() && test.labels.empty()) return splits;
  RIDGE_RETURN_IF_ERROR(CheckComplete(name, "t10k", test));
  RIDGE_ASSIGN_OR_RETURN(splits.test, OpenPair(name, test));
  return splits;
}

Result<DataSplits> OpenFashionMnist(const std::string& folder) {
  RIDGE_RETURN_IF_ERROR(
      CheckFolder("fashion-mnist", folder, ". hint: apt-get install dataset-fashion-mnist"));
  return OpenIdxFolder("fashion-mnist", folder);
}

}  // namespace ridge
