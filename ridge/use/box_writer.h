// Boxes that a detector found in a picture: where they lie in it, and the picture with them drawn.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/data/image/encode.h"
#include "ridge/data/image/picture.h"
#include "ridge/observe/detected_boxes.h"

namespace ridge {

// How a picture lies in what a model reads of it.
PictureFrame FrameOf(const ImageSize& picture, const PictureTarget& target);

// Outlines of boxes in the pixels of `onto`, with their titles above; the first box on top.
struct TitledBox {
  DetectedBox box;
  std::string title;  // any text
};
void DrawBoxes(std::span<const TitledBox> boxes, RgbPicture& onto);

// Boxes of the model's input in pixels of the picture file `input`, cut at its edges; of another
// input those of the model's own picture.  `target`: what pictures became for the model, if inputs
// are pictures.  Fails as reading the file does.
Result<std::vector<DetectedBox>> BoxesOfInput(std::vector<DetectedBox> boxes,
                                              const std::string& input,
                                              const std::optional<PictureTarget>& target);

}  // namespace ridge
