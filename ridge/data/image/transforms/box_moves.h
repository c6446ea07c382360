// Where the boxes of objects go when a transform moves the picture.
#pragma once
#include <span>
#include <string>

#include "ridge/data/image/transforms/transform.h"

namespace ridge {

// Boxes x1, y1, x2, y2 in pixels, in place, with the draws of PictureTransform::apply.
using BoxMove = void (*)(const PictureShape&, const TransformNumbers&, TransformDraws&,
                         std::span<float> boxes);

// Null: the transform loses the boxes.
BoxMove FindBoxMove(const PictureTransform& transform);

// "flip, vflip, ..."
std::string BoxMoveNames();

}  // namespace ridge
