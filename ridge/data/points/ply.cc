// The header of PLY files (Turk, 1994): elements with properties, of which `vertex` with x, y, z is
// read.  Elements before it must have no lists, whose lengths are in the data.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "ridge/data/points/formats.h"
#include "ridge/data/points/text_numbers.h"

namespace ridge {
namespace {

Status BadPly(const std::string& what) { return Status(ErrorCode::kInvalidData, what); }

struct PlyType {
  std::string_view name, other;
  CloudNumber type;
  int64_t bytes;
};
constexpr PlyType kPlyTypes[] = {
    {"char", "int8", CloudNumber::kI8, 1},      {"uchar", "uint8", CloudNumber::kU8, 1},
    {"short", "int16", CloudNumber::kI16, 2},   {"ushort", "uint16", CloudNumber::kU16, 2},
    {"int", "int32", CloudNumber::kI32, 4},     {"uint", "uint32", CloudNumber::kU32, 4},
    {"float", "float32", CloudNumber::kF32, 4}, {"double", "float64", CloudNumber::kF64, 8},
};

const PlyType* FindPlyType(std::string_view name) {
  for (const PlyType& type : kPlyTypes) {
    if (name == type.name || name == type.other) return &type;
  }
  return nullptr;
}

// What a header has said so far.
class PlyHeader {
 public:
  explicit PlyHeader(int64_t file_bytes) : file_bytes_(file_bytes) {}

  // A line; true at its last one.
  Result<bool> Take(std::string_view line) {
    TextNumbers words(line);
    const std::string_view key = words.Word();
    if (key == "end_header") return true;
    if (key == "format") RIDGE_RETURN_IF_ERROR(TakeFormat(words));
    if (key == "element") RIDGE_RETURN_IF_ERROR(TakeElement(words));
    if (key == "property") RIDGE_RETURN_IF_ERROR(TakeProperty(words));
    return false;
  }

  // `data_offset`: where the header ends.
  Result<CloudHeader> Finish(int64_t data_offset) {
    if (!has_format_) return BadPly("its PLY header names no format");
    if (!has_vertices_) return BadPly("its PLY header has no element 'vertex'");
    for (size_t d = 0; d < 3; ++d) {
      if (!found_[d])
        return BadPly(fmt::format("its PLY vertices have no property '{}'", "xyz"[d]));
    }
    const int64_t left = file_bytes_ - data_offset;
    const int64_t before = header_.is_text ? 2 * header_.skipped : bytes_before_;
    const int64_t least = header_.is_text ? 2 * header_.columns : header_.point_bytes;
    if (header_.points > (left - before + (header_.is_text ? 1 : 0)) / least) {
      return BadPly(
          fmt::format("its PLY header declares {} vertices of {} {} or more, and {} bytes follow",
                      header_.points, least, "bytes", left));
    }
    header_.data_offset = data_offset + (header_.is_text ? 0 : bytes_before_);
    return header_;
  }

 private:
  Status TakeFormat(TextNumbers& words) {
    const std::string_view format = words.Word();
    if (has_format_ || has_element_)
      return BadPly("its PLY header must name its format once, before the elements");
    has_format_ = true;
    header_.is_text = format == "ascii";
    header_.big_endian = format == "binary_big_endian";
    if (header_.is_text || header_.big_endian || format == "binary_little_endian") return Status();
    return BadPly(
        fmt::format("its PLY format is '{}'; it must be ascii, binary_little_endian or "
                    "binary_big_endian",
                    Shown(format)));
  }

  Status TakeElement(TextNumbers& words) {
    RIDGE_RETURN_IF_ERROR(EndElement());
    has_element_ = true;
    const std::string_view name = words.Word();
    const auto count = words.Number<int64_t>();
    if (!count || *count < 0)
      return BadPly(fmt::format("its PLY element '{}' has no count", Shown(name)));
    in_vertices_ = name == "vertex" && !has_vertices_;
    count_ = *count;
    columns_ = bytes_ = 0;
    has_list_ = false;
    if (!in_vertices_) return Status();
    has_vertices_ = true;
    header_.points = *count;
    if (*count >= 1 && *count <= kMostCloudPoints) return Status();
    return BadPly(fmt::format("its PLY header declares {} vertices; 1 to {} are read", *count,
                              kMostCloudPoints));
  }

  // An element before the vertices is skipped.
  Status EndElement() {
    if (has_vertices_) return Status();
    if (has_list_) return BadPly("its PLY file has an element with lists before the vertices");
    const int64_t each = std::max(columns_, bytes_);
    if (each > 0 && count_ > file_bytes_ / each)
      return BadPly(
          fmt::format("its PLY header declares {} elements before the vertices, more "
                      "than the file can hold",
                      count_));
    header_.skipped += count_ * columns_;
    bytes_before_ += count_ * bytes_;
    return Status();
  }

  Status TakeProperty(TextNumbers& words) {
    const std::string_view type_name = words.Word();
    if (type_name == "list") {
      if (in_vertices_) return BadPly("its PLY vertices have a property that is a list");
      has_list_ = true;
      return Status();
    }
    const PlyType* type = FindPlyType(type_name);
    if (type == nullptr)
      return BadPly(fmt::format("its PLY header has a property of type '{}'", Shown(type_name)));
    const size_t axis = std::string_view("xyz").find(words.Word());
    if (in_vertices_ && axis < 3 && !found_[axis]) {
      found_[axis] = true;
      header_.places[axis] = header_.is_text ? columns_ : bytes_;
      header_.types[axis] = type->type;
    }
    ++columns_;
    bytes_ += type->bytes;
    if (in_vertices_) {
      header_.columns = columns_;
      header_.point_bytes = bytes_;
    }
    return Status();
  }

  const int64_t file_bytes_;
  CloudHeader header_;
  bool has_format_ = false, has_element_ = false, has_vertices_ = false;
  bool in_vertices_ = false, has_list_ = false;
  std::array<bool, 3> found_ = {};
  int64_t count_ = 0, columns_ = 0, bytes_ = 0;  // of the element that is read
  int64_t bytes_before_ = 0;
};

}  // namespace

Result<CloudHeader> ReadPlyHeader(std::string_view start, int64_t file_bytes) {
  TextNumbers lines(start);
  lines.Line();  // "ply"
  PlyHeader header(file_bytes);
  while (!lines.rest().empty()) {
    const bool is_whole = lines.rest().find('\n') != std::string_view::npos;
    RIDGE_ASSIGN_OR_RETURN(const bool ended, header.Take(lines.Line()));
    if (ended && is_whole) return header.Finish(static_cast<int64_t>(lines.position()));
  }
  return BadPly(fmt::format("its PLY header has no end_header in {} bytes", start.size()));
}

}  // namespace ridge
