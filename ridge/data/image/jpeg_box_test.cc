#include "ridge/data/image/jpeg_box.h"

#include <gtest/gtest.h>

#include <cstdio>  // jpeglib.h needs its FILE
//
#include <jpeglib.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "ridge/core/files.h"
#include "ridge/data/image/decode.h"

namespace ridge {
namespace {

using Bytes = std::vector<uint8_t>;

struct JpegForm {
  int width = 0, height = 0;
  int h = 1, v = 1;  // samples of luma for one of chroma
  bool grey = false, progressive = false, separate = false;
  int restart_rows = 0, quality = 90;
};

// Waves and noise.
Bytes Pixels(const JpegForm& form, std::mt19937& random) {
  Bytes pixels;
  for (int y = 0; y < form.height; ++y) {
    for (int x = 0; x < form.width * (form.grey ? 1 : 3); ++x)
      pixels.push_back(static_cast<uint8_t>(7 * x + 5 * y + x * y / 9 + random() % 90));
  }
  return pixels;
}

// One scan a component.
void Separate(jpeg_compress_struct& encoder, std::vector<jpeg_scan_info>& scans) {
  for (int c = 0; c < encoder.num_components; ++c)
    scans.push_back({1, {c, 0, 0, 0}, /*Ss=*/0, /*Se=*/63, /*Ah=*/0, /*Al=*/0});
  encoder.scan_info = scans.data();
  encoder.num_scans = static_cast<int>(scans.size());
}

Bytes Encode(const JpegForm& form, const Bytes& pixels) {
  jpeg_compress_struct encoder{};
  jpeg_error_mgr errors{};
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  unsigned char* file = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): libjpeg's type
  jpeg_mem_dest(&encoder, &file, &size);
  encoder.image_width = static_cast<JDIMENSION>(form.width);
  encoder.image_height = static_cast<JDIMENSION>(form.height);
  encoder.input_components = form.grey ? 1 : 3;
  encoder.in_color_space = form.grey ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&encoder);
  jpeg_set_quality(&encoder, form.quality, /*force_baseline=*/TRUE);
  encoder.comp_info[0].h_samp_factor = form.h;
  encoder.comp_info[0].v_samp_factor = form.v;
  encoder.restart_in_rows = form.restart_rows;
  std::vector<jpeg_scan_info> scans;
  if (form.progressive) jpeg_simple_progression(&encoder);
  if (form.separate) Separate(encoder, scans);
  jpeg_start_compress(&encoder, TRUE);
  while (encoder.next_scanline < encoder.image_height) {
    const int stride = form.width * encoder.input_components;
    auto* row = const_cast<JSAMPLE*>(pixels.data()) + encoder.next_scanline * stride;
    jpeg_write_scanlines(&encoder, &row, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  Bytes bytes(file, file + size);
  std::free(file);
  return bytes;
}

PictureBox RandomBox(const ImageHeader& header, std::mt19937& random) {
  const auto below = [&](int64_t count) { return static_cast<int64_t>(random()) % count; };
  PictureBox box;
  box.height = 1 + below(header.height);
  box.width = 1 + below(header.width);
  box.top = below(header.height - box.height + 1);
  box.left = below(header.width - box.width + 1);
  return box;
}

// Whether the part holds the box and has the bytes of all of the picture there.
void ExpectBytesOf(const Bytes& whole, const ImageHeader& header, const PictureBox& part,
                   const PictureBox& box, const Bytes& rgb) {
  EXPECT_TRUE(part.top <= box.top && part.left <= box.left);
  ASSERT_GE(part.top + part.height, box.top + box.height);
  ASSERT_GE(part.left + part.width, box.left + box.width);
  for (int64_t y = box.top; y < box.top + box.height; ++y) {
    const auto* wanted = whole.data() + (y * header.width + box.left) * 3;
    const auto* got = rgb.data() + ((y - part.top) * part.width + box.left - part.left) * 3;
    ASSERT_TRUE(std::equal(wanted, wanted + box.width * 3, got))
        << "row " << y << " of " << box.top << "+" << box.height << ", " << box.left << "+"
        << box.width << " of " << header.width << "x" << header.height;
  }
}

// Returns how many of the boxes were decoded without the rest.
int CheckBoxes(const Bytes& file, int boxes, std::mt19937& random) {
  const ImageHeader header = **ReadImageHeader(file, /*whole=*/true);
  Bytes whole(static_cast<size_t>(DecodedBytes(header))), rgb(whole.size());
  EXPECT_TRUE(DecodeImage(file, header, whole).ok());
  int parts = 0;
  for (int i = 0; i < boxes && !testing::Test::HasFailure(); ++i) {
    const PictureBox box = RandomBox(header, random);
    const auto part = DecodeImageBox(file, header, box, rgb);
    EXPECT_TRUE(part.ok()) << part.status().message();
    if (part->height < header.height) ++parts;
    ExpectBytesOf(whole, header, *part, box, rgb);
  }
  return parts;
}

TEST(JpegBox, HasTheBytesOfTheWholePicture) {
  constexpr int kBoxes = 40;
  std::mt19937 random(1);
  const std::pair<int, int> samplings[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}, {4, 2}};
  const std::pair<int, int> sizes[] = {{160, 120}, {61, 77}, {16, 16}, {17, 31}, {5, 9}, {1, 50}};
  for (const auto& [width, height] : sizes) {
    for (const auto& [h, v] : samplings) {
      for (const int restart_rows : {0, 1}) {
        const JpegForm form{.width = width,
                            .height = height,
                            .h = h,
                            .v = v,
                            .restart_rows = restart_rows,
                            .quality = 30 + static_cast<int>(random() % 70)};
        SCOPED_TRACE(testing::Message() << width << "x" << height << " sampled " << h << "x" << v);
        EXPECT_GT(CheckBoxes(Encode(form, Pixels(form, random)), kBoxes, random), kBoxes / 3);
      }
    }
    const JpegForm grey{.width = width, .height = height, .grey = true};
    EXPECT_GT(CheckBoxes(Encode(grey, Pixels(grey, random)), kBoxes, random), kBoxes / 3);
  }
}

TEST(JpegBox, OtherPicturesAreDecodedWhole) {
  std::mt19937 random(2);
  for (const bool progressive : {true, false}) {
    const JpegForm form{.width = 50,
                        .height = 40,
                        .h = 2,
                        .v = 2,
                        .progressive = progressive,
                        .separate = !progressive};
    EXPECT_EQ(CheckBoxes(Encode(form, Pixels(form, random)), 20, random), 0);
  }
  for (const char* name : {"cmyk.jpg", "alpha.webp", "2-8.png"}) {
    const std::string file =
        *ReadFile(std::string(std::getenv("RIDGE_SOURCE_DIR")) + "/tests/golden/pictures/" + name);
    EXPECT_EQ(CheckBoxes(Bytes(file.begin(), file.end()), 20, random), 0) << name;
  }
}

TEST(JpegBox, DamageIsRefusedUpToTheBoxAndLeavesNothingBehind) {
  std::mt19937 random(3);
  const JpegForm form{.width = 160, .height = 120, .h = 2, .v = 2};
  const Bytes file = Encode(form, Pixels(form, random));
  const ImageHeader header = **ReadImageHeader(file, /*whole=*/true);
  const PictureBox top{8, 20, 30, 60}, bottom{80, 20, 40, 60};
  Bytes rgb(static_cast<size_t>(DecodedBytes(header)));
  Bytes cut = file;
  cut.resize(cut.size() / 2);
  const auto refused = DecodeImageBox(cut, header, bottom, rgb);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().message(), "its JPEG data is damaged: Premature end of JPEG file");
  EXPECT_TRUE(DecodeImageBox(cut, header, top, rgb).ok());
  for (int i = 0; i < 300; ++i) {
    Bytes damaged = file;
    for (int k = 0; k < 1 + i % 9; ++k)
      damaged[20 + random() % (damaged.size() - 20)] = static_cast<uint8_t>(random());
    const auto found = ReadImageHeader(damaged, /*whole=*/true);
    if (found.ok() && **found == header)
      (void)DecodeImageBox(damaged, header, RandomBox(header, random), rgb);
  }
  EXPECT_GT(CheckBoxes(file, 20, random), 5);
}

}  // namespace
}  // namespace ridge
