#include "ridge/use/mask_writer.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "ridge/core/files.h"
#include "ridge/core/test_folder.h"
#include "ridge/data/image/mask_picture.h"

namespace ridge {
namespace {

using testing::ElementsAre;

TEST(MaskWriterTest, ThePixelIsOfTheFirstClassWithTheLargestScore) {
  EXPECT_THAT(ClassOfPixels(std::vector<double>{1, 5, 2, 3, 5, 2, 2, 6, 0}, 3),
              ElementsAre(1, 2, 0));
}

// A picture of 2x4 that is cropped to the 2x2 in its middle.
TEST(MaskWriterTest, WhatWasCutOffHasNoClass) {
  PictureTarget target;
  target.size = {2, 2};
  EXPECT_THAT(MaskOfPicture(std::vector<uint8_t>{1, 2, 3, 4}, target, {2, 4}),
              ElementsAre(255, 1, 2, 255, 255, 3, 4, 255));
  target.fit = ImageFit::kStretch;
  EXPECT_THAT(MaskOfPicture(std::vector<uint8_t>{1, 2, 3, 4}, target, {2, 4}),
              ElementsAre(1, 1, 2, 2, 3, 3, 4, 4));
}

TEST(MaskWriterTest, EqualNamesGetANumber) {
  const TempFolder folder;
  PictureTarget target;
  target.size = {1, 2};
  folder.Write("a.png", EncodePng(RgbPicture::Filled({3, 6}, 100)));
  MaskWriter writer(folder.File("out"), target.size, target);
  const std::vector<uint8_t> ids = {0, 1};
  EXPECT_EQ(*writer.Write(folder.File("a.png"), ids), folder.File("out/a.png"));
  EXPECT_EQ(*writer.Write(folder.File("a.png"), ids), folder.File("out/a-2.png"));
  EXPECT_EQ(*writer.Write("rows.npz[3]", ids), folder.File("out/rows.npz[3].png"));
  EXPECT_TRUE(std::filesystem::exists(folder.File("out/a-2.overlay.png")));
  EXPECT_EQ(*ReadFile(folder.File("out/rows.npz[3].png")), EncodeMaskPng({1, 2}, ids));
  EXPECT_FALSE(writer.Write(folder.File("none.png"), ids).ok());
}

TEST(MaskWriterTest, TheColoursAreThoseOfPascalVoc) {
  EXPECT_THAT(ClassColor(0), ElementsAre(0, 0, 0));
  EXPECT_THAT(ClassColor(1), ElementsAre(128, 0, 0));
  EXPECT_THAT(ClassColor(15), ElementsAre(192, 128, 128));
  EXPECT_THAT(ClassColor(20), ElementsAre(0, 64, 128));
  EXPECT_THAT(ClassColor(255), ElementsAre(224, 224, 192));
  RgbPicture picture = RgbPicture::Filled({1, 2}, 100);
  OverlayMask(std::vector<uint8_t>{0, 1}, picture);
  EXPECT_THAT(picture.pixels, ElementsAre(100, 100, 100, 114, 50, 50));
}

}  // namespace
}  // namespace ridge
