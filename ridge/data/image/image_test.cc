// The golden cases are Pillow's: tests/golden/make_pictures.py.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "ridge/core/files.h"
#include "ridge/core/sha256.h"
#include "ridge/data/image/crop.h"
#include "ridge/data/image/decode.h"
#include "ridge/data/image/encode.h"

namespace ridge {
namespace {

using Pixels = std::vector<uint8_t>;

std::string GoldenFolder() {
  return std::string(std::getenv("RIDGE_SOURCE_DIR")) + "/tests/golden/pictures/";
}

std::string ReadGolden(const std::string& name) { return *ReadFile(GoldenFolder() + name); }

std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

Result<Pixels> Decode(const std::string& file) {
  RIDGE_ASSIGN_OR_RETURN(const auto header, ReadImageHeader(BytesOf(file), /*whole=*/true));
  Pixels rgb(static_cast<size_t>(DecodedBytes(*header)));
  RIDGE_RETURN_IF_ERROR(DecodeImage(BytesOf(file), *header, rgb));
  rgb.resize(static_cast<size_t>(3 * header->pixels()));
  return rgb;
}

std::string Reason(const std::string& file) {
  const auto decoded = Decode(file);
  return decoded.ok() ? "ok" : decoded.status().message();
}

std::string Sha(const Pixels& pixels) {
  Sha256 hash;
  hash.Add(pixels.data(), static_cast<int64_t>(pixels.size()));
  return hash.Hex();
}

// The picture that make_pictures.py calls source().
Pixels Source(int64_t width, int64_t height, int channels) {
  Pixels pixels;
  for (int64_t i = 0; i < height * width * channels; ++i) {
    const int64_t noise = static_cast<uint32_t>(i * 2654435761) >> 26;
    const int64_t pixel = i / channels;
    pixels.push_back(
        static_cast<uint8_t>(noise + pixel % width * 4 + pixel / width * 3 + i % channels * 85));
  }
  return pixels;
}

Pixels Resized(const ResizeCall& call) {
  Pixels from = Source(call.x.in, call.y.in, call.channels);
  from.resize(from.size() + kResizeSlackBytes, 0xAA);
  Pixels to(static_cast<size_t>(call.x.count * call.y.count * call.channels));
  std::vector<char> scratch(static_cast<size_t>(ResizeScratchBytes(call)));
  Resize(call, from.data(), scratch, to.data());
  return to;
}

ResizeFilter FilterOf(const std::string& name) {
  if (name == "bicubic") return ResizeFilter::kBicubic;
  return name == "nearest" ? ResizeFilter::kNearest : ResizeFilter::kBilinear;
}

std::string DecodedSha(std::istringstream& words) {
  std::string name;
  int64_t width = 0, height = 0;
  words >> name >> width >> height;
  const std::string file = ReadGolden(name);
  const auto header = ReadImageHeader(BytesOf(file), /*whole=*/true);
  EXPECT_TRUE(header.ok() && (*header)->width == width && (*header)->height == height) << name;
  const auto pixels = Decode(file);
  return pixels.ok() ? Sha(*pixels) : pixels.status().message();
}

std::string LumaSha(std::istringstream& words) {
  std::string name;
  words >> name;
  Pixels pixels = *Decode(ReadGolden(name));
  RgbToLuma(pixels.data(), static_cast<int64_t>(pixels.size() / 3));
  pixels.resize(pixels.size() / 3);
  return Sha(pixels);
}

std::string ResizedSha(std::istringstream& words) {
  ResizeCall call;
  std::string filter;
  words >> call.x.in >> call.y.in >> call.channels >> filter;
  words >> call.x.box_begin >> call.y.box_begin >> call.x.box_end >> call.y.box_end;
  words >> call.x.out >> call.y.out;
  call.filter = FilterOf(filter);
  call.x.count = call.x.out;
  call.y.count = call.y.out;
  return Sha(Resized(call));
}

std::string FittedSha(std::istringstream& words) {
  ImageSize from, to;
  int channels = 0;
  std::string filter, fit;
  words >> from.width >> from.height >> channels >> filter >> to.height >> to.width >> fit;
  return Sha(Resized(FitPicture(from, to, fit == "crop" ? ImageFit::kCrop : ImageFit::kStretch,
                                FilterOf(filter), channels)));
}

// All cases, with whatever instructions are chosen now.
void ExpectTheBytesOfPillow() {
  std::ifstream expected(GoldenFolder() + "expected.txt");
  int cases = 0;
  for (std::string line; std::getline(expected, line); ++cases) {
    std::istringstream words(line);
    std::string command, sha, is;
    words >> command;
    if (command == "decode") is = DecodedSha(words);
    if (command == "luma") is = LumaSha(words);
    if (command == "resize") is = ResizedSha(words);
    if (command == "fit") is = FittedSha(words);
    words >> sha;
    EXPECT_EQ(is, sha) << line;
  }
  EXPECT_GT(cases, 300);
}

TEST(Image, GivesTheBytesOfPillowWithAllInstructions) {
  for (const int64_t target : {HWY_AVX3, HWY_AVX2, HWY_SSSE3}) {
    if ((hwy::SupportedTargets() & target) == 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    SCOPED_TRACE(hwy::TargetName(target));
    ExpectTheBytesOfPillow();
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

TEST(Resize, OfAWindowIsThatPartOfTheWhole) {
  for (const auto filter : {ResizeFilter::kBilinear, ResizeFilter::kNearest}) {
    ResizeCall call{
        .x = ResizeAxis::Whole(97, 41), .y = ResizeAxis::Whole(301, 23), .filter = filter};
    const Pixels whole = Resized(call);
    call.x.first = 36, call.x.count = 5;
    call.y.first = 7, call.y.count = 16;
    const Pixels window = Resized(call);
    for (size_t y = 0; y < 16; ++y)
      EXPECT_EQ(std::memcmp(&window[y * 15], &whole[((y + 7) * 41 + 36) * 3], 15), 0) << y;
  }
}

TEST(ImageHeader, NeedsNoMoreThanTheFirstBytes) {
  const std::string file = ReadGolden("420.jpg");
  const auto none = ReadImageHeader(BytesOf(file).first(20), /*whole=*/false);
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
  const auto some = ReadImageHeader(BytesOf(file).first(400), /*whole=*/false);
  ASSERT_TRUE(some.ok() && some->has_value());
  EXPECT_EQ((*some)->width, 61);
}

TEST(ImageHeader, IsWhatTheBytesSay) {
  const auto of = [](const std::string& name) {
    const ImageHeader header = **ReadImageHeader(BytesOf(ReadGolden(name)), /*whole=*/true);
    return std::string(ImageFormatName(header.format)) + " " + std::to_string(header.channels);
  };
  EXPECT_EQ(of("420.jpg"), "JPEG 3");
  EXPECT_EQ(of("grey.jpg"), "JPEG 1");
  EXPECT_EQ(of("cmyk.jpg"), "JPEG 4");
  EXPECT_EQ(of("3-8.png"), "PNG 3");
  EXPECT_EQ(of("4-16.png"), "PNG 2");
  EXPECT_EQ(of("alpha.webp"), "WebP 4");
}

TEST(ImageHeader, CountsWhatTheDecoderHolds) {
  const auto of = [](const std::string& name) {
    return (*ReadImageHeader(BytesOf(ReadGolden(name)), /*whole=*/true))->decoder_bytes;
  };
  EXPECT_EQ(of("420.jpg"), 0);
  EXPECT_EQ(of("progressive.jpg"), 2 * (61 + 32) * (47 + 32) * 6 / 4);  // chroma: a quarter each
  EXPECT_EQ(of("lossless.webp"), 4 * 23 * 17);
  EXPECT_EQ(of("lossy.webp"), 0);
}

TEST(Decode, RefusesWhatIsNoPicture) {
  EXPECT_EQ(Reason(""), "is empty");
  EXPECT_EQ(Reason("GIF89a"), "is no JPEG, PNG or WebP file: it begins with 47 49 46 38");
  EXPECT_EQ(Reason("x"), "is no JPEG, PNG or WebP file: it begins with 78");
  EXPECT_EQ(Reason("\xFF\xD8\xFF"), "ends inside its header");
  EXPECT_EQ(Reason("\xFF\xD8\xFF\xD9"), "has no frame header before its data");
}

// A JPEG's frame header may say anything.
std::string JpegOf(const std::string& frame) {
  return std::string("\xFF\xD8\xFF\xC0\x00\x11", 6) + frame;
}

TEST(Decode, RefusesSizesBeforeItAllocates) {
  EXPECT_EQ(Reason(JpegOf("\x08\xFF\xFF\xFF\xFF\x03")),
            "has 65535x65535 pixels, at most 268435456 pixels are read");
  EXPECT_EQ(Reason(JpegOf(std::string("\x08\x00\x00\x00\x10\x03", 6))), "has 16x0 pixels");
  EXPECT_EQ(Reason(JpegOf(std::string("\x0C\x00\x10\x00\x10\x03", 6))),
            "has 12 bits a sample, JPEGs of 8 are read");
  EXPECT_EQ(Reason(JpegOf(std::string("\x08\x00\x10\x00\x10\x02", 6))),
            "has 2 components, JPEGs of 1, 3 and 4 are read");
  std::string png = ReadGolden("2-8.png");
  png.replace(16, 8, "\x7F\xFF\xFF\xFF\x7F\xFF\xFF\xFF");
  EXPECT_EQ(Reason(png), "has 2147483647x2147483647 pixels, at most 268435456 pixels are read");
}

TEST(Decode, RefusesFilesThatAreCutOff) {
  const auto half = [](const std::string& name) {
    const std::string file = ReadGolden(name);
    return Reason(file.substr(0, file.size() * 3 / 4));
  };
  EXPECT_EQ(half("420.jpg"), "its JPEG data is damaged: Premature end of JPEG file");
  EXPECT_EQ(half("progressive.jpg"), "its JPEG data is damaged: Premature end of JPEG file");
  EXPECT_EQ(half("2-8.png"), "its PNG data is damaged: the file is cut off");
  EXPECT_EQ(half("lossy.webp"), "its WebP data is damaged: the file is cut off");
}

TEST(Decode, NeverGivesHalfAPicture) {
  for (const char* name :
       {"420.jpg", "cmyk.jpg", "2-8-interlaced.png", "3-4-trns.png", "lossy.webp", "exact.webp"}) {
    const std::string file = ReadGolden(name);
    for (size_t size = 0; size + 2 < file.size(); size += 7)
      EXPECT_NE(Reason(file.substr(0, size)), "ok") << name << " of " << size;
  }
}

TEST(Decode, RefusesDamagedPixels) {
  std::string png = ReadGolden("2-8.png");
  png[png.size() - 30] ^= 1;
  EXPECT_EQ(Reason(png).substr(0, 24), "its PNG data is damaged:");
  std::string jpeg = ReadGolden("444.jpg");
  jpeg.replace(jpeg.size() - 40, 4, "\xFF\xD7\xFF\xD7");
  EXPECT_EQ(Reason(jpeg).substr(0, 25), "its JPEG data is damaged:");
}

// One decoder serves all pictures of a thread.
TEST(Decode, IsNotChangedByThePictureBefore) {
  for (const char* name : {"420.jpg", "progressive.jpg", "cmyk.jpg", "grey.jpg", "rgb.jpg"}) {
    const Pixels alone = *Decode(ReadGolden(name));
    for (const char* before : {"cmyk.jpg", "progressive.jpg", "dot.jpg"}) {
      const std::string file = ReadGolden(before);
      Reason(file);
      EXPECT_EQ(*Decode(ReadGolden(name)), alone) << name << " after " << before;
      EXPECT_NE(Reason(file.substr(0, file.size() - 20)), "ok");
      EXPECT_EQ(*Decode(ReadGolden(name)), alone) << name << " after a damaged " << before;
    }
  }
}

TEST(EncodePng, IsDecodedToTheSamePixels) {
  for (const ImageSize size : {ImageSize{1, 1}, ImageSize{3, 70}, ImageSize{41, 2}}) {
    const RgbPicture picture{size, Source(size.width, size.height, 3)};
    const auto decoded = Decode(EncodePng(picture));
    ASSERT_TRUE(decoded.ok()) << decoded.status().message();
    EXPECT_EQ(*decoded, picture.pixels) << size.height << "x" << size.width;
  }
}

}  // namespace
}  // namespace ridge
