// CloudReader: files of point clouds to one number of points, whatever holds the bytes.
//
// A source shows it the header of each file when it opens (Admit), so that the memory that reading
// takes is known before the run.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "ridge/data/image/transforms/random_box.h"
#include "ridge/data/points/cloud_file.h"
#include "ridge/data/points/point_target.h"

namespace ridge {

inline constexpr const char* kCloudChanged = "has changed since the data was opened";

class CloudReader {
 public:
  explicit CloudReader(const PointTarget& target) : target_(target) {}

  const PointTarget& target() const { return target_; }

  void Admit(const CloudHeader& header);  // such a cloud may be read from now on
  int64_t scratch_bytes() const { return scratch_bytes_; }

  // `out`: f32[count,3].  With `draw` the points are a random choice, or for PointPick::kFarthest
  // begin at a random one.  Fails with kInvalidData; the message is the bare reason.  Thread-safe,
  // each thread with a scratch of its own.
  // REQUIRES: scratch_bytes() in `scratch`, aligned for doubles.
  Status Read(std::string_view file, std::span<char> scratch, float* out,
              const CropDraw* draw = nullptr) const;

 private:
  int64_t ScratchBytes(const CloudHeader& header) const;
  void Choose(std::span<const double> cloud, std::span<char> scratch, std::span<int64_t> chosen,
              const CropDraw* draw) const;

  const PointTarget target_;
  int64_t scratch_bytes_ = 0;
};

}  // namespace ridge
