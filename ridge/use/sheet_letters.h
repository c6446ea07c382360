// DrawText: dot-matrix letters on a picture, for pages that no font is at hand for.
#pragma once
#include <string>

#include "ridge/data/image/encode.h"

namespace ridge {

inline constexpr int64_t kLetterWidth = 12, kLetterHeight = 16;  // pixels, the gap behind included

// The text as DrawText shows it: other characters than printable ASCII are '?', one a code point.
std::string Drawable(const std::string& text);

// From the left upper corner on; what lies outside of the picture is left out.
// REQUIRES: `text` is Drawable.
void DrawText(const std::string& text, int64_t y, int64_t x, RgbPicture& onto);

}  // namespace ridge
