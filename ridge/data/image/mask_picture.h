// Masks as people see them: a colour a class.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "ridge/data/image/encode.h"

namespace ridge {

// The colours of Pascal VOC: class 0 is black, 1 dark red, 2 green, ...
std::array<uint8_t, 3> ClassColor(uint8_t id);

// A PNG with a palette, whose indices are `ids` [height, width] and whose colours are ClassColor.
// REQUIRES: a pixel or more, sides below 2^31.
std::string EncodeMaskPng(const ImageSize& size, std::span<const uint8_t> ids);

// Half the picture and half the colour of the class; class 0 leaves the picture as it is.
// REQUIRES: an id a pixel of the picture.
void OverlayMask(std::span<const uint8_t> ids, RgbPicture& picture);

}  // namespace ridge
