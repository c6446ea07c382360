// TurboJPEG and libwebp return; libpng jumps.  The function that libpng may leave by a jump holds
// nothing that has a destructor, and its caller frees what libpng has allocated.
//
// Ancillary chunks of a PNG (texts, profiles, times) are skipped unread: none changes a byte of the
// result, and some unpack to gigabytes.
#include "ridge/data/image/decode.h"

#include <fmt/format.h>
#include <png.h>
#include <turbojpeg.h>
#include <webp/decode.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "ridge/data/image/jpeg_box.h"

namespace ridge {
namespace {

using Bytes = std::span<const uint8_t>;

Status Damaged(ImageFormat format, const std::string& reason) {
  return Status(ErrorCode::kInvalidData,
                fmt::format("its {} data is damaged: {}", ImageFormatName(format), reason));
}

// a * b / 255, rounded, for bytes
int MulDiv255(int a, int b) {
  const int t = a * b + 128;
  return ((t >> 8) + t) >> 8;
}

// In place: the three bytes of a pixel are written behind the four that were read.
void InvertedCmykToRgb(uint8_t* pixels, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const int key = pixels[4 * i + 3];  // 255 - black
    uint8_t rgb[3];
    for (int c = 0; c < 3; ++c)
      rgb[c] =
          static_cast<uint8_t>(std::clamp(key - MulDiv255(255 - pixels[4 * i + c], key), 0, 255));
    std::memcpy(pixels + 3 * i, rgb, 3);
  }
}

// A decoder is made once a thread: that takes longer than a small picture.  What one picture leaves
// in it, a damaged one too, is reset by the next.
void* JpegDecoder() {
  thread_local const std::unique_ptr<void, int (*)(void*)> decoder(tjInitDecompress(), tjDestroy);
  return decoder.get();
}

Status DecodeJpeg(Bytes bytes, const ImageHeader& header, uint8_t* rgb) {
  constexpr int kFlags = TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS;
  const bool cmyk = header.channels == 4;
  void* decoder = JpegDecoder();
  if (decoder == nullptr) return Status(ErrorCode::kOutOfMemory, "no memory for a JPEG decoder");
  const int failed = tjDecompress2(
      decoder, bytes.data(), bytes.size(), rgb, static_cast<int>(header.width), /*pitch=*/0,
      static_cast<int>(header.height), cmyk ? TJPF_CMYK : TJPF_RGB, kFlags);
  if (failed != 0) return Damaged(header.format, tjGetErrorStr2(decoder));
  if (cmyk) InvertedCmykToRgb(rgb, header.pixels());
  return Status();
}

const char* WebpReason(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return "the decoder is out of memory";
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return "the file is cut off";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "it uses an unknown feature";
    default:
      return "the bit stream is wrong";
  }
}

Status DecodeWebp(Bytes bytes, const ImageHeader& header, std::span<uint8_t> rgb) {
  WebPDecoderConfig config;
  RIDGE_CHECK(WebPInitDecoderConfig(&config) != 0, "libwebp is the version of its headers");
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {rgb.data(), static_cast<int>(3 * header.width), rgb.size()};
  const VP8StatusCode status = WebPDecode(bytes.data(), bytes.size(), &config);
  WebPFreeDecBuffer(&config.output);
  return status == VP8_STATUS_OK ? Status() : Damaged(header.format, WebpReason(status));
}

enum class PngPixels { kColors, kClassIds };

// What libpng's callbacks see.
struct PngFile {
  Bytes rest;
  PngPixels pixels = PngPixels::kColors;
  char reason[160] = "";
};

[[noreturn]] void FailPng(png_structp png, png_const_charp reason) {
  auto* file = static_cast<PngFile*>(png_get_error_ptr(png));
  std::snprintf(file->reason, sizeof(file->reason), "%s", reason);
  png_longjmp(png, 1);
}

void ReadPng(png_structp png, png_bytep to, size_t count) {
  auto* file = static_cast<PngFile*>(png_get_io_ptr(png));
  if (count > file->rest.size()) png_error(png, "the file is cut off");
  std::memcpy(to, file->rest.data(), count);
  file->rest = file->rest.subspan(count);
}

// Palette indices and grey levels as they are, a byte each; an index beyond the palette is one too.
void AskForIds(png_structp png) {
  png_set_packing(png);
  png_set_check_for_invalid_index(png, /*allowed=*/0);
}

// libpng's transformations to RGB of 8 bits; 16-bit grey stays as it is.
void AskForRgb(png_structp png, bool wide_grey) {
  png_set_expand_gray_1_2_4_to_8(png);
  png_set_palette_to_rgb(png);
  png_set_strip_alpha(png);
  if (wide_grey) return;
  png_set_strip_16(png);
  png_set_gray_to_rgb(png);
}

// Returns false when libpng has jumped.  Nothing here has a destructor.
bool ReadPngRows(png_structp png, png_infop info, PngFile* file, uint8_t* rgb) {
  constexpr png_alloc_size_t kMostChunkBytes = 1 << 30;  // skipped ones are not allocated
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_read_fn(png, file, ReadPng);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // the header's were checked
  png_set_chunk_malloc_max(png, kMostChunkBytes);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_benign_errors(png, /*allowed=*/0);
  png_read_info(png, info);
  const png_byte type = png_get_color_type(png, info);
  const bool wide_grey = type == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(png, info) == 16;
  const bool ids = file->pixels == PngPixels::kClassIds;
  ids ? AskForIds(png) : AskForRgb(png, wide_grey);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  const png_uint_32 width = png_get_image_width(png, info);
  const png_uint_32 height = png_get_image_height(png, info);
  const size_t row_bytes = (ids ? size_t{1} : size_t{3}) * width;
  if (png_get_rowbytes(png, info) > row_bytes) png_error(png, "its rows are too long");
  for (int pass = 0; pass < passes; ++pass) {
    for (png_uint_32 y = 0; y < height; ++y) png_read_row(png, rgb + y * row_bytes, nullptr);
  }
  png_read_end(png, nullptr);
  return true;
}

// In place, from the right: [0..255] stays, more is 255, as Pillow turns 16-bit grey into 8.
void CapWideGrey(uint8_t* row, int64_t width) {
  for (int64_t x = width - 1; x >= 0; --x) {
    const uint8_t value = row[2 * x] != 0 ? 255 : row[2 * x + 1];
    std::memset(row + 3 * x, value, 3);
  }
}

Status DecodePng(Bytes bytes, const ImageHeader& header, PngPixels pixels, uint8_t* rgb) {
  PngFile file{.rest = bytes, .pixels = pixels};
  const auto ignore = [](png_structp, png_const_charp) {};
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &file, FailPng, ignore);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  if (info == nullptr) {
    png_destroy_read_struct(&png, nullptr, nullptr);
    return Status(ErrorCode::kOutOfMemory, "no memory for a PNG decoder");
  }
  const bool read = ReadPngRows(png, info, &file, rgb);
  const bool wide_grey = read && header.channels == 1 && png_get_bit_depth(png, info) == 16;
  png_destroy_read_struct(&png, &info, nullptr);
  if (!read) return Damaged(header.format, file.reason);
  for (int64_t y = 0; wide_grey && y < header.height; ++y)
    CapWideGrey(rgb + y * header.width * 3, header.width);
  return Status();
}

}  // namespace

int64_t DecodedBytes(const ImageHeader& header) {
  const bool cmyk = header.format == ImageFormat::kJpeg && header.channels == 4;
  return header.pixels() * (cmyk ? 4 : 3);
}

Status DecodeImage(std::span<const uint8_t> bytes, const ImageHeader& header,
                   std::span<uint8_t> rgb) {
  RIDGE_CHECK(static_cast<int64_t>(rgb.size()) >= DecodedBytes(header), "the picture has a place");
  RIDGE_ASSIGN_OR_RETURN(const auto found, ReadImageHeader(bytes, /*whole=*/true, header.pixels()));
  RIDGE_CHECK(*found == header, "the header is the file's");
  if (header.format == ImageFormat::kJpeg) return DecodeJpeg(bytes, header, rgb.data());
  if (header.format == ImageFormat::kPng)
    return DecodePng(bytes, header, PngPixels::kColors, rgb.data());
  return DecodeWebp(bytes, header, rgb);
}

Result<PictureBox> DecodeImageBox(std::span<const uint8_t> bytes, const ImageHeader& header,
                                  const PictureBox& box, std::span<uint8_t> rgb) {
  RIDGE_CHECK(static_cast<int64_t>(rgb.size()) >= DecodedBytes(header), "the picture has a place");
  const PictureBox whole{0, 0, header.height, header.width};
  if (header.format == ImageFormat::kJpeg && box != whole) {
    const auto part = DecodeJpegBox(bytes, whole, box, rgb.data());
    if (!part.ok()) return Damaged(header.format, part.status().message());
    if (*part) return **part;
  }
  RIDGE_RETURN_IF_ERROR(DecodeImage(bytes, header, rgb));
  return whole;
}

Status DecodeMask(std::span<const uint8_t> bytes, const ImageHeader& header,
                  std::span<uint8_t> ids) {
  RIDGE_CHECK(std::ssize(ids) >= header.pixels(), "the mask has a place");
  RIDGE_RETURN_IF_ERROR(CheckMaskFile(bytes, header));
  return DecodePng(bytes, header, PngPixels::kClassIds, ids.data());
}

Status CheckMaskFile(std::span<const uint8_t> bytes, const ImageHeader& header) {
  constexpr const char* kWanted = "a mask is a PNG of 8 bits or fewer, with a palette or grey";
  const auto refuse = [&](const std::string& is) {
    return Status(ErrorCode::kInvalidData, fmt::format("is {}; {}", is, kWanted));
  };
  if (header.format != ImageFormat::kPng)
    return refuse(fmt::format("a {} picture", ImageFormatName(header.format)));
  constexpr size_t kDepthAt = 24, kTypeAt = 25;  // of IHDR
  RIDGE_CHECK(bytes.size() > kTypeAt, "a PNG with a header is as long");
  if (bytes[kTypeAt] != PNG_COLOR_TYPE_PALETTE && bytes[kTypeAt] != PNG_COLOR_TYPE_GRAY)
    return refuse(fmt::format("a PNG of {} channels", header.channels));
  if (bytes[kDepthAt] > 8) return refuse(fmt::format("a PNG of {} bits", bytes[kDepthAt]));
  return Status();
}

void RgbToLuma(uint8_t* pixels, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t* rgb = pixels + 3 * i;
    pixels[i] =
        static_cast<uint8_t>((19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) >> 16);
  }
}

}  // namespace ridge
