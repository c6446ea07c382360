// Changes of place: the pixels that Pillow's nearest resampling gives.  Each copies the picture
// into `scratch`, shape.bytes(), where it is not done in place.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "ridge/data/image/transforms/transform.h"

namespace ridge {

struct PictureBox {
  int64_t top = 0, left = 0, height = 0, width = 0;
  bool operator==(const PictureBox&) const = default;
};

void FlipLeftRight(const PictureShape& shape, uint8_t* pixels);
void FlipTopBottom(const PictureShape& shape, uint8_t* pixels);

// out(y, x) = in(y + top, x + left), 0 beyond the picture.
void Shift(const PictureShape& shape, int64_t top, int64_t left, std::span<char> scratch,
           uint8_t* pixels);

// out(y, x) = in(d x + e y + f, a x + b y + c) about pixel centres, 0 beyond the picture; the
// coordinates are rounded to 2^-16 as Pillow's.
void Affine(const PictureShape& shape, const std::array<double, 6>& abcdef, std::span<char> scratch,
            uint8_t* pixels);

// Counterclockwise about the centre, Pillow's rotate.
void Rotate(const PictureShape& shape, double degrees, std::span<char> scratch, uint8_t* pixels);

// The box becomes shape.erased.
void Erase(const PictureShape& shape, const PictureBox& box, uint8_t* pixels);

}  // namespace ridge
