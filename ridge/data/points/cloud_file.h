// Files of point clouds: PLY (text, little- and big-endian), arrays of numpy f32 or f64 [N,3 or
// more], and OFF.
//
// Of each point the first three numbers count: x, y, z.  An OFF file with faces is a mesh: its
// points are kMeshPoints places on its surface, drawn evenly and always the same.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

inline constexpr int64_t kMostCloudBytes = int64_t{1} << 30;
inline constexpr int64_t kMostCloudPoints = int64_t{1} << 24;
inline constexpr int64_t kMeshPoints = 10000;
inline constexpr int64_t kCloudStartBytes = (1 << 16) + 12;  // hold any header that is read

enum class CloudFormat { kPly, kNpy, kOff };
const char* CloudFormatName(CloudFormat format);  // "PLY"

enum class CloudNumber { kI8, kU8, kI16, kU16, kI32, kU32, kF32, kF64 };

struct CloudHeader {
  CloudFormat format = CloudFormat::kPly;
  int64_t points = 0;  // at least 1; of a mesh: its corners
  int64_t faces = 0;   // of a mesh
  int64_t data_offset = 0;

  bool is_text = false;
  int64_t columns = 0;  // of text: numbers of a point
  int64_t skipped = 0;  // of text: numbers before the first point
  // Columns in text; bytes from the beginning of a point otherwise.
  std::array<int64_t, 3> places = {};
  std::array<CloudNumber, 3> types = {};
  int64_t point_bytes = 0;
  bool big_endian = false;

  int64_t points_made() const { return faces > 0 ? kMeshPoints : points; }
  bool operator==(const CloudHeader&) const = default;
};

// `start`: the file's first kCloudStartBytes, or all of it.  What the header declares is in the
// file.  Fails with kInvalidData; the message is the bare reason.
Result<CloudHeader> ReadCloudHeader(std::string_view start, int64_t file_bytes);

// The memory that ReadCloud takes beside its result.
int64_t CloudScratchBytes(const CloudHeader& header);

// Writes points_made() points, x y z each.  Fails with kInvalidData, also for numbers that are not
// finite; the message is the bare reason, with the number of the point.
// REQUIRES: the header is the file's; CloudScratchBytes in `scratch`, aligned for doubles.
Status ReadCloud(std::string_view file, const CloudHeader& header, std::span<char> scratch,
                 double* out);

}  // namespace ridge
