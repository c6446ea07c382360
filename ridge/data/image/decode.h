// DecodeImage: the bytes of a picture's file to RGB, the bytes that Pillow's convert("RGB") gives.
//
// JPEG: accurate DCT, smooth ("fancy") upsampling, CMYK as Adobe writes it (inverted).  PNG:
// palette and transparency become colours, alpha is dropped, of 16 bits the upper 8 stay (16-bit
// grey is capped at 255, as Pillow does).  WebP: the one picture of the file.  Orientation marks,
// colour profiles and gamma are not applied.
//
// A file that is truncated or damaged anywhere the decoder looks is refused, also where the decoder
// itself would only warn.  Thread-safe.
#pragma once
#include <cstdint>
#include <span>

#include "ridge/core/status.h"
#include "ridge/data/image/header.h"
#include "ridge/data/image/transforms/geometry.h"

namespace ridge {

// What DecodeImage needs for its result: width * height * 3 bytes, 4 instead of 3 for CMYK.
int64_t DecodedBytes(const ImageHeader& header);

// Writes [height, width, 3] to the front of `rgb`, which has DecodedBytes(header) bytes; the rest
// is undefined.  `header` is that of `bytes`, the whole file. Fails with kInvalidData; the message
// is the bare reason: "its JPEG data is damaged: ...".
Status DecodeImage(std::span<const uint8_t> bytes, const ImageHeader& header,
                   std::span<uint8_t> rgb);

// The same for a box of it: writes a part that holds the box, [part.height, part.width, 3], the
// bytes that DecodeImage has there, and returns the part.  JPEGs of one scan are decoded only so
// far, and damage behind the part is not seen; of other pictures the part is all.  Fails as
// DecodeImage.  REQUIRES: `box` lies within the picture.
Result<PictureBox> DecodeImageBox(std::span<const uint8_t> bytes, const ImageHeader& header,
                                  const PictureBox& box, std::span<uint8_t> rgb);

// The mask of a picture, a class id a pixel: [height, width] to the front of `ids`, which has
// header.pixels() bytes.  Fails as DecodeImage and as CheckMaskFile do.
Status DecodeMask(std::span<const uint8_t> bytes, const ImageHeader& header,
                  std::span<uint8_t> ids);

// Whether a pixel has one id: PNG of 8 bits or fewer, palette indices or levels of grey.  `bytes`
// is what its header was read from.  Fails with kInvalidData; the message is the bare reason.
Status CheckMaskFile(std::span<const uint8_t> bytes, const ImageHeader& header);

// [pixels, 3] to [pixels] in place: (19595 r + 38470 g + 7471 b + 32768) / 65536, ITU-R 601 as
// Pillow's convert("L") rounds it.
void RgbToLuma(uint8_t* pixels, int64_t count);

}  // namespace ridge
