// Resizing along one axis as weighted sums: which places of the input each output reads.
#pragma once
#include <string>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/graph/attributes.h"

namespace ridge {

struct ResizeMode {
  std::string interpolation = "nearest";        // nearest, linear or cubic
  std::string coordinates = "half_pixel";       // as coordinate_transformation_mode of ONNX
  std::string rounding = "round_prefer_floor";  // of nearest
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  // Of nearest, before opset 11: the place above where the axis becomes shorter, else that below.
  bool rounds_by_scale = false;
};

// One axis: `output` places from `input`; `scale` is output / input, or what the file says.
struct OnnxResizeAxis {
  int64_t axis = 0;
  int64_t input = 0, output = 0;
  double scale = 1;
  double roi_start = 0, roi_end = 1;  // for tf_crop_and_resize
};

// Rows of a sparse matrix, as `interpolate` takes them.
struct ResizeTable {
  std::vector<int64_t> starts = {0};
  std::vector<int64_t> places;
  std::vector<double> weights;
  std::vector<bool> outside;  // outputs of tf_crop_and_resize beyond the input: they read nothing

  AttrMap attrs(int64_t axis) const;
  // Every row reads one place, with weight 1.
  bool copies() const;
  // Row o reads place o * input / output alone; 0 when it does not, else output / input.
  int64_t repeats(const OnnxResizeAxis& axis) const;
};

// Fails with kUnsupported when the table would have more than 2^26 entries, kInvalidModel on a mode
// that is none; the message says no place.  REQUIRES: input >= 1, output >= 0, scale > 0.
Result<ResizeTable> MakeResizeTable(const ResizeMode& mode, const OnnxResizeAxis& axis);

}  // namespace ridge
