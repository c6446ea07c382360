// libjpeg-turbo's own functions, which TurboJPEG 2 does not show; all settings are those that
// TurboJPEG makes in decode.cc.
//
// Smooth upsampling takes the neighbours of a chroma sample, and takes the edge of the part for
// that of the picture: the part is wider than the box by kMargin.  Rows need no margin: the skipped
// ones before the box leave their last samples to it.
//
// libjpeg leaves by a jump: what it may jump over holds nothing that has a destructor.
#include "ridge/data/image/jpeg_box.h"

#include <cstdio>  // jpeglib.h needs its FILE
//
#include <jpeglib.h>

#include <algorithm>
#include <csetjmp>
#include <memory>

namespace ridge {
namespace {

constexpr int64_t kMargin = 8;  // pixels; 2 are two columns of one chroma sample

struct JpegReader {
  jpeg_decompress_struct decoder{};
  jpeg_error_mgr errors{};
  bool made = false;
  std::jmp_buf failed;
  char reason[JMSG_LENGTH_MAX] = "";

  JpegReader() = default;
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
  ~JpegReader() {
    if (made) jpeg_destroy_decompress(&decoder);
  }
};

[[noreturn]] void Fail(j_common_ptr decoder) {
  auto* reader = static_cast<JpegReader*>(decoder->client_data);
  decoder->err->format_message(decoder, reader->reason);
  std::longjmp(reader->failed, 1);
}

// Damage is a warning to libjpeg.
void Warn(j_common_ptr decoder, int level) {
  if (level < 0) Fail(decoder);
}

void Make(JpegReader* reader) {
  jpeg_decompress_struct& decoder = reader->decoder;
  decoder.err = jpeg_std_error(&reader->errors);
  decoder.client_data = reader;  // kept by what follows
  reader->errors.error_exit = Fail;
  reader->errors.emit_message = Warn;
  jpeg_create_decompress(&decoder);
  reader->made = true;
}

// Made once a thread; what a picture leaves in it is cleared behind it.
JpegReader* Reader() {
  thread_local const std::unique_ptr<JpegReader> reader = std::make_unique<JpegReader>();
  return reader.get();
}

// Whether rows of the picture can be had one after the other.
bool ReadsRows(jpeg_decompress_struct& decoder, const PictureBox& picture) {
  return decoder.image_width == picture.width && decoder.image_height == picture.height &&
         !decoder.progressive_mode && !decoder.arith_code && decoder.num_components != 4 &&
         !jpeg_has_multiple_scans(&decoder);
}

void ReadRows(jpeg_decompress_struct& decoder, const PictureBox& box, uint8_t* rgb,
              PictureBox* part) {
  const int64_t right = std::min<int64_t>(decoder.output_width, box.left + box.width + kMargin);
  auto left = static_cast<JDIMENSION>(std::max<int64_t>(0, box.left - kMargin));
  auto width = static_cast<JDIMENSION>(right - left);
  if (width < decoder.output_width) jpeg_crop_scanline(&decoder, &left, &width);
  *part = {box.top, left, box.height, width};
  if (box.top > 0) jpeg_skip_scanlines(&decoder, static_cast<JDIMENSION>(box.top));
  for (int64_t row = 0; row < box.height;) {
    JSAMPROW to = rgb + row * width * 3;
    row += jpeg_read_scanlines(&decoder, &to, 1);
  }
}

enum class Outcome { kPart, kWhole, kFailed };

Outcome Decode(JpegReader* reader, std::span<const uint8_t> bytes, const PictureBox& picture,
               const PictureBox& box, uint8_t* rgb, PictureBox* part) {
  if (setjmp(reader->failed) != 0) return Outcome::kFailed;
  if (!reader->made) Make(reader);
  jpeg_decompress_struct& decoder = reader->decoder;
  jpeg_mem_src(&decoder, bytes.data(), bytes.size());
  jpeg_read_header(&decoder, /*require_image=*/TRUE);
  if (!ReadsRows(decoder, picture)) return Outcome::kWhole;
  decoder.out_color_space = JCS_RGB;
  decoder.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&decoder);
  ReadRows(decoder, box, rgb, part);
  return Outcome::kPart;
}

}  // namespace

Result<std::optional<PictureBox>> DecodeJpegBox(std::span<const uint8_t> bytes,
                                                const PictureBox& picture, const PictureBox& box,
                                                uint8_t* rgb) {
  JpegReader* reader = Reader();
  PictureBox part;
  const Outcome outcome = Decode(reader, bytes, picture, box, rgb, &part);
  if (reader->made) jpeg_abort_decompress(&reader->decoder);
  if (outcome == Outcome::kFailed) return Status(ErrorCode::kInvalidData, reader->reason);
  if (outcome == Outcome::kWhole) return std::optional<PictureBox>();
  return std::optional(part);
}

}  // namespace ridge
