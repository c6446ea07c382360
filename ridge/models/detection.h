// The end of a detector without anchor boxes: boxes from distributions of distances, and the loss.
//
// A place is a cell of one of the feature maps; its anchor is the cell's middle.  Boxes are x1, y1,
// x2, y2 in pixels of the image.
#pragma once
#include <string>
#include <vector>

#include "ridge/models/layers.h"

namespace ridge {

inline constexpr int64_t kDistanceBins = 16;  // distances of 0 to 15 cells

struct DetectionMap {
  Value distances;  // [B, 4 * kDistanceBins, H, W]: left, top, right, bottom
  Value classes;    // [B, C, H, W]: logits
  int64_t stride = 1;
};

// Inputs `boxes` [B, most_boxes, 4] and `classes` i64[B, most_boxes], where places behind the last
// box have class -1.  Outputs `logits` [B,A,C], `detections` [B,A,4+C], which are boxes and class
// probabilities, and `loss`.
void DetectionEnd(GraphBuilder& b, const ModelOptions& options,
                  const std::vector<DetectionMap>& maps, int64_t most_boxes);

}  // namespace ridge
