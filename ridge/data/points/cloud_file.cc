#include "ridge/data/points/cloud_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "ridge/data/npy.h"
#include "ridge/data/points/formats.h"
#include "ridge/data/points/text_numbers.h"

namespace ridge {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr double kMostCoordinate = 1e38;  // of f32; areas and their squares stay finite in f64

Status BadCloud(const std::string& what) { return Status(ErrorCode::kInvalidData, what); }

Result<CloudHeader> ReadNpyCloudHeader(std::string_view start, int64_t file_bytes) {
  const auto npy = ReadNpyStart("", start);
  if (!npy.ok()) return BadCloud(Shown(npy.status().message().substr(2), 400));  // without ": "
  const TensorType& type = npy->type;
  const bool is_double = type.dtype == DType::kF64;
  if ((type.dtype != DType::kF32 && !is_double) || type.rank() != 2 || type.dims[1] < 3 ||
      type.dims[0] < 1 || type.dims[0] > kMostCloudPoints) {
    return BadCloud(
        fmt::format("its array is {}; it must be f32 or f64 [N,3], with 1 to {} rows of "
                    "3 numbers or more",
                    TypeToString(type), kMostCloudPoints));
  }
  if (npy->header_bytes + type.bytes() != file_bytes) {
    return BadCloud(fmt::format("its array is {}, {} bytes, and {} follow", TypeToString(type),
                                type.bytes(), file_bytes - npy->header_bytes));
  }
  CloudHeader header;
  header.format = CloudFormat::kNpy;
  header.points = type.dims[0];
  header.data_offset = npy->header_bytes;
  const int64_t bytes = is_double ? 8 : 4;
  header.places = {0, bytes, 2 * bytes};
  header.types.fill(is_double ? CloudNumber::kF64 : CloudNumber::kF32);
  header.point_bytes = type.dims[1] * bytes;
  return header;
}

template <typename T>
double LoadAs(const char* from, bool big_endian) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, from, sizeof(T));
  if (big_endian) std::reverse(bytes, bytes + sizeof(T));
  T number;
  std::memcpy(&number, bytes, sizeof(T));
  return static_cast<double>(number);
}

double LoadNumber(CloudNumber type, const char* from, bool big_endian) {
  switch (type) {
    case CloudNumber::kI8:
      return LoadAs<int8_t>(from, big_endian);
    case CloudNumber::kU8:
      return LoadAs<uint8_t>(from, big_endian);
    case CloudNumber::kI16:
      return LoadAs<int16_t>(from, big_endian);
    case CloudNumber::kU16:
      return LoadAs<uint16_t>(from, big_endian);
    case CloudNumber::kI32:
      return LoadAs<int32_t>(from, big_endian);
    case CloudNumber::kU32:
      return LoadAs<uint32_t>(from, big_endian);
    case CloudNumber::kF32:
      return LoadAs<float>(from, big_endian);
    case CloudNumber::kF64:
      break;
  }
  return LoadAs<double>(from, big_endian);
}

void ReadBinary(std::string_view data, const CloudHeader& header, double* out) {
  for (int64_t i = 0; i < header.points; ++i) {
    const char* point = data.data() + i * header.point_bytes;
    for (size_t d = 0; d < 3; ++d) {
      out[3 * i + static_cast<int64_t>(d)] =
          LoadNumber(header.types[d], point + header.places[d], header.big_endian);
    }
  }
}

Status ReadTextPoint(TextNumbers& text, const CloudHeader& header, int64_t point, double* out) {
  for (int64_t column = 0; column < header.columns; ++column) {
    const auto number = text.Number<double>();
    if (!number) {
      return BadCloud(fmt::format("point {} of {} has no number in column {}", point, header.points,
                                  column + 1));
    }
    for (size_t d = 0; d < 3; ++d) {
      if (header.places[d] == column) out[d] = *number;
    }
  }
  return Status();
}

// Behind the points.
Result<size_t> ReadText(std::string_view data, const CloudHeader& header, double* out) {
  TextNumbers text(data, /*comments=*/header.format == CloudFormat::kOff);
  for (int64_t i = 0; i < header.skipped; ++i) text.Word();
  for (int64_t i = 0; i < header.points; ++i) {
    RIDGE_RETURN_IF_ERROR(ReadTextPoint(text, header, i, out + 3 * i));
    if (header.format == CloudFormat::kOff) text.Line();  // colours
  }
  return text.position();
}

Status CheckFinite(const double* points, int64_t count) {
  for (int64_t i = 0; i < 3 * count; ++i) {
    if (std::abs(points[i]) <= kMostCoordinate) continue;
    return BadCloud(
        fmt::format("point {} has a coordinate that is {}; it must be finite, at most {}", i / 3,
                    points[i], kMostCoordinate));
  }
  return Status();
}

}  // namespace

const char* CloudFormatName(CloudFormat format) {
  return format == CloudFormat::kPly ? "PLY" : format == CloudFormat::kNpy ? "NumPy" : "OFF";
}

Result<CloudHeader> ReadCloudHeader(std::string_view start, int64_t file_bytes) {
  if (file_bytes > kMostCloudBytes)
    return BadCloud(fmt::format("has {} bytes, at most {} are read", file_bytes, kMostCloudBytes));
  if (start.starts_with("ply\n") || start.starts_with("ply\r")) {
    return ReadPlyHeader(start, file_bytes);
  }
  if (start.starts_with("\x93NUMPY")) return ReadNpyCloudHeader(start, file_bytes);
  if (start.starts_with("OFF")) return ReadOffHeader(start, file_bytes);
  return BadCloud("is no PLY, OFF or NumPy file");
}

int64_t CloudScratchBytes(const CloudHeader& header) {
  return header.faces > 0 ? kMeshScratchBytes + header.points * 3 * 8 : 0;
}

Status ReadCloud(std::string_view file, const CloudHeader& header, std::span<char> scratch,
                 double* out) {
  const std::string_view data = file.substr(static_cast<size_t>(header.data_offset));
  if (!header.is_text) {
    ReadBinary(data, header, out);
    return CheckFinite(out, header.points);
  }
  const bool is_mesh = header.faces > 0;
  double* points = is_mesh ? reinterpret_cast<double*>(scratch.data() + kMeshScratchBytes) : out;
  RIDGE_ASSIGN_OR_RETURN(const size_t end, ReadText(data, header, points));
  RIDGE_RETURN_IF_ERROR(CheckFinite(points, header.points));
  return is_mesh ? SampleMesh(data.substr(end), header, points, scratch, out) : Status();
}

}  // namespace ridge
