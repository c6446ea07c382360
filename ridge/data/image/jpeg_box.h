// DecodeJpegBox: the part of a JPEG that a crop needs, the bytes that decoding all of it gives
// there.
//
// Rows behind the part are not read, columns and rows beside it are unpacked and not transformed.
// What is damaged behind the part is not seen.  Thread-safe.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "ridge/core/status.h"
#include "ridge/data/image/transforms/geometry.h"

namespace ridge {

// Writes [part.height, part.width, 3] to `rgb` and returns the part, which holds `box`.  Nothing
// where all of the picture must be decoded: progressive ones, those of several scans, CMYK.  Fails
// with kInvalidData; the message is libjpeg's reason.
// REQUIRES: `box` lies within the picture, {0, 0, height, width} by its header; it fits into `rgb`.
Result<std::optional<PictureBox>> DecodeJpegBox(std::span<const uint8_t> bytes,
                                                const PictureBox& picture, const PictureBox& box,
                                                uint8_t* rgb);

}  // namespace ridge
