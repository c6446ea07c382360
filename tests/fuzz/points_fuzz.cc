// A point cloud of any bytes: its header, and its points chosen in each way.
#include <cmath>
#include <vector>

#include "ridge/data/points/cloud_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const auto header =
      ridge::ReadCloudHeader(file.substr(0, ridge::kCloudStartBytes), static_cast<int64_t>(size));
  if (!header.ok()) return 0;
  RIDGE_CHECK(header->points >= 1 && header->points <= static_cast<int64_t>(size),
              "points that the file holds");
  ridge::CropDraw draw;
  draw.sample = static_cast<int64_t>(size);
  for (const ridge::PointPick pick : {ridge::PointPick::kEven, ridge::PointPick::kFarthest}) {
    ridge::CloudReader reader({.count = 7, .pick = pick});
    reader.Admit(*header);
    std::vector<char> scratch(static_cast<size_t>(reader.scratch_bytes()));
    std::vector<float> out(21);
    if (!reader.Read(file, scratch, out.data()).ok()) continue;
    for (const float x : out) RIDGE_CHECK(std::abs(x) <= 1.001F, "points within the unit sphere");
    (void)reader.Read(file, scratch, out.data(), &draw);
  }
  return 0;
}
