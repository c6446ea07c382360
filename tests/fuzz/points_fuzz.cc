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
  using ridge::PointPick, ridge::PointScale;
  for (const ridge::PointTarget& target :
       {ridge::PointTarget{7, PointPick::kEven, PointScale::kSphere},
        ridge::PointTarget{7, PointPick::kFirst, PointScale::kNone},
        ridge::PointTarget{7, PointPick::kFarthest, PointScale::kSphere}}) {
    ridge::CloudReader reader(target);
    reader.Admit(*header);
    std::vector<char> scratch(static_cast<size_t>(reader.scratch_bytes()));
    std::vector<float> out(21);
    if (!reader.Read(file, scratch, out.data()).ok()) continue;
    const float most = target.scale == PointScale::kSphere ? 1.001F : 1.001e38F;
    for (const float x : out) RIDGE_CHECK(std::abs(x) <= most, "points within their bounds");
    (void)reader.Read(file, scratch, out.data(), &draw);
  }
  return 0;
}
