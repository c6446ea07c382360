// ImageHeader: what the first bytes of a picture's file tell.
//
// The format is what the bytes say; a file's name says nothing.  Pictures that are too large to be
// read are refused here, before anything is allocated.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "ridge/core/status.h"

namespace ridge {

enum class ImageFormat : uint8_t { kJpeg, kPng, kWebp };

const char* ImageFormatName(ImageFormat format);  // "JPEG"

struct ImageHeader {
  ImageFormat format = ImageFormat::kJpeg;
  int channels = 3;  // in the file: 1 grey, 2 with alpha, 3 colour or palette, 4 with alpha or CMYK
  int64_t width = 0;
  int64_t height = 0;
  int64_t decoder_bytes = 0;  // of the picture that its decoder holds beside the result

  int64_t pixels() const { return width * height; }
  bool operator==(const ImageHeader&) const = default;
};

constexpr int64_t kMostPixels = int64_t{1} << 28;

// `bytes` is the beginning of a file, or all of it when `whole`.  Nothing when more bytes are
// needed, which is never so of a whole file.  The message of a failure (kInvalidData) is the bare
// reason: "is empty".
Result<std::optional<ImageHeader>> ReadImageHeader(std::span<const uint8_t> bytes, bool whole,
                                                   int64_t most_pixels = kMostPixels);

}  // namespace ridge
