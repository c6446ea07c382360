// JPEG: segments from marker to marker up to the frame header, as libjpeg walks them.  PNG: IHDR
// stands at a fixed place.  WebP: the library reads it.
#include "ridge/data/image/header.h"

#include <fmt/format.h>
#include <webp/decode.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace ridge {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr std::string_view kPngMagic = "\x89PNG\r\n\x1a\n";

Status Bad(std::string reason) { return Status(ErrorCode::kInvalidData, std::move(reason)); }

// One header, a reason why there is none, or (no value) a wish for more bytes.
using Found = Result<std::optional<ImageHeader>>;

int64_t BigEndian16(const uint8_t* at) { return at[0] << 8 | at[1]; }
int64_t BigEndian32(const uint8_t* at) { return BigEndian16(at) << 16 | BigEndian16(at + 2); }

bool Begins(Bytes bytes, std::string_view with) {
  const size_t count = std::min(bytes.size(), with.size());
  return std::equal(bytes.begin(), bytes.begin() + count, with.begin(),
                    [](uint8_t byte, char c) { return byte == static_cast<uint8_t>(c); });
}

bool IsFrame(uint8_t marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

bool StandsAlone(uint8_t marker) {  // no length follows
  return marker == 0 || marker == 1 || (marker >= 0xD0 && marker <= 0xD8);
}

// A progressive JPEG is decoded when all coefficients are there, 16 bits each; a component has as
// many as its share of the sampling factors says.
int64_t ProgressiveBytes(const ImageHeader& header, Bytes components) {
  constexpr int64_t kPadding = 32;  // whole groups of blocks, on each side
  int64_t most_h = 1, most_v = 1, samples = 0;
  for (int c = 0; c < header.channels; ++c) {
    const int64_t h = components[3 * c + 1] >> 4, v = components[3 * c + 1] & 15;
    most_h = std::max(most_h, h);
    most_v = std::max(most_v, v);
    samples += h * v;
  }
  const int64_t padded = (header.width + kPadding) * (header.height + kPadding);
  return 2 * padded * samples / (most_h * most_v);
}

// The frame header, behind its marker: length, precision, height, width, components.
Found JpegFrame(uint8_t marker, Bytes frame) {
  constexpr size_t kBytes = 8;
  if (frame.size() < kBytes) return std::optional<ImageHeader>();
  const int precision = frame[2];
  if (precision != 8)
    return Bad(fmt::format("has {} bits a sample, JPEGs of 8 are read", precision));
  ImageHeader header;
  header.height = BigEndian16(&frame[3]);
  header.width = BigEndian16(&frame[5]);
  header.channels = frame[7];
  if (header.channels != 1 && header.channels != 3 && header.channels != 4)
    return Bad(fmt::format("has {} components, JPEGs of 1, 3 and 4 are read", header.channels));
  const bool progressive = (marker & 3) == 2;
  if (!progressive) return std::optional(header);
  const Bytes components = frame.subspan(kBytes);
  if (components.size() < 3 * static_cast<size_t>(header.channels))
    return std::optional<ImageHeader>();
  header.decoder_bytes = ProgressiveBytes(header, components);
  return std::optional(header);
}

Found JpegHeader(Bytes bytes) {
  size_t at = 2;
  for (;;) {
    while (at < bytes.size() && bytes[at] != 0xFF) ++at;
    while (at < bytes.size() && bytes[at] == 0xFF) ++at;
    if (at >= bytes.size()) return std::optional<ImageHeader>();
    const uint8_t marker = bytes[at++];
    if (StandsAlone(marker)) continue;
    if (IsFrame(marker)) return JpegFrame(marker, bytes.subspan(at));
    if (marker == 0xD9 || marker == 0xDA) return Bad("has no frame header before its data");
    if (at + 2 > bytes.size()) return std::optional<ImageHeader>();
    at += static_cast<size_t>(std::max<int64_t>(2, BigEndian16(&bytes[at])));
  }
}

Found PngHeader(Bytes bytes) {
  constexpr size_t kBytes = 26;  // up to the colour type
  if (bytes.size() < kBytes) return std::optional<ImageHeader>();
  if (!Begins(bytes.subspan(12), "IHDR")) return Bad("does not begin with the chunk IHDR");
  static constexpr std::array<int, 7> kChannels = {1, 0, 3, 3, 2, 0, 4};  // of the colour type
  const uint8_t type = bytes[25];
  if (type >= kChannels.size() || kChannels[type] == 0)
    return Bad(fmt::format("has the colour type {}, PNGs have 0, 2, 3, 4 or 6", type));
  ImageHeader header{.format = ImageFormat::kPng, .channels = kChannels[type]};
  header.width = BigEndian32(&bytes[16]);
  header.height = BigEndian32(&bytes[20]);
  return std::optional(header);
}

Found WebpHeader(Bytes bytes) {
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(bytes.data(), bytes.size(), &features);
  if (status == VP8_STATUS_NOT_ENOUGH_DATA) return std::optional<ImageHeader>();
  if (status != VP8_STATUS_OK) return Bad("has a broken WebP header");
  if (features.has_animation) return Bad("is an animation, a single picture is needed");
  ImageHeader header{.format = ImageFormat::kWebp, .channels = features.has_alpha ? 4 : 3};
  header.width = features.width;
  header.height = features.height;
  constexpr int kLossless = 2;
  if (features.format == kLossless) header.decoder_bytes = 4 * header.pixels();
  return std::optional(header);
}

Found HeaderOfAnyFormat(Bytes bytes) {
  constexpr size_t kMagicBytes = 12;
  if (Begins(bytes, "\xFF\xD8\xFF")) return JpegHeader(bytes);
  if (Begins(bytes, kPngMagic)) return PngHeader(bytes);
  const bool webp =
      Begins(bytes, "RIFF") && (bytes.size() < kMagicBytes || Begins(bytes.subspan(8), "WEBP"));
  if (webp) return WebpHeader(bytes);
  std::string start;
  for (const uint8_t byte : bytes.first(std::min<size_t>(4, bytes.size())))
    start += fmt::format(" {:02x}", byte);
  return Bad(fmt::format("is no JPEG, PNG or WebP file: it begins with{}", start));
}

Status CheckSize(const ImageHeader& header, int64_t most_pixels) {
  const bool empty = header.width < 1 || header.height < 1;
  if (!empty && header.height <= most_pixels / header.width) return Status();
  const std::string size = fmt::format("{}x{} pixels", header.width, header.height);
  if (empty) return Bad("has " + size);
  return Bad(fmt::format("has {}, at most {} pixels are read", size, most_pixels));
}

}  // namespace

const char* ImageFormatName(ImageFormat format) {
  if (format == ImageFormat::kJpeg) return "JPEG";
  return format == ImageFormat::kPng ? "PNG" : "WebP";
}

Result<std::optional<ImageHeader>> ReadImageHeader(std::span<const uint8_t> bytes, bool whole,
                                                   int64_t most_pixels) {
  if (bytes.empty() && whole) return Bad("is empty");
  if (bytes.empty()) return std::optional<ImageHeader>();
  RIDGE_ASSIGN_OR_RETURN(const std::optional<ImageHeader> header, HeaderOfAnyFormat(bytes));
  if (!header && whole) return Bad("ends inside its header");
  if (header) RIDGE_RETURN_IF_ERROR(CheckSize(*header, most_pixels));
  return header;
}

}  // namespace ridge
