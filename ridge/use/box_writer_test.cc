#include "ridge/use/box_writer.h"

#include <gtest/gtest.h>

#include "ridge/core/files.h"
#include "ridge/core/test_folder.h"

namespace ridge {
namespace {

PictureTarget Target(ImageFit fit) {
  PictureTarget target;
  target.size = {50, 100};
  target.fit = fit;
  return target;
}

// Corners of a picture become corners of the input, and come back.
TEST(BoxWriterTest, AStretchedPictureIsScaledOnBothSides) {
  const PictureFrame frame = FrameOf({200, 300}, Target(ImageFit::kStretch));
  const DetectedBox box = InPicture({0, 0, 100, 50, 0.5, 3}, frame);
  EXPECT_DOUBLE_EQ(box.x1, 0);
  EXPECT_DOUBLE_EQ(box.y1, 0);
  EXPECT_DOUBLE_EQ(box.x2, 300);
  EXPECT_DOUBLE_EQ(box.y2, 200);
  EXPECT_EQ(box.label, 3);
}

// 200 x 200 fills 100 x 50 as its middle 200 x 100.
TEST(BoxWriterTest, OfACroppedPictureTheMiddleIsSeen) {
  const PictureFrame frame = FrameOf({200, 200}, Target(ImageFit::kCrop));
  const DetectedBox box = InPicture({0, 0, 100, 50, 0.5, 0}, frame);
  EXPECT_DOUBLE_EQ(box.x1, 0);
  EXPECT_DOUBLE_EQ(box.x2, 200);
  EXPECT_DOUBLE_EQ(box.y1, 50);
  EXPECT_DOUBLE_EQ(box.y2, 150);
}

// 200 x 200 lies in 100 x 50 as 50 x 50 between margins of 25.
TEST(BoxWriterTest, OfAPaddedPictureTheMarginsAreCut) {
  const PictureFrame frame = FrameOf({200, 200}, Target(ImageFit::kPad));
  const DetectedBox box = InPicture({50, 10, 90, 50, 0.5, 0}, frame);
  EXPECT_DOUBLE_EQ(box.x1, 100);
  EXPECT_DOUBLE_EQ(box.x2, 200);
  EXPECT_DOUBLE_EQ(box.y1, 40);
  EXPECT_DOUBLE_EQ(box.y2, 200);
}

TEST(BoxWriterTest, BoxesOfAFileAreInItsPixelsAndOthersInThoseOfTheInput) {
  const TempFolder folder;
  folder.Write("a.png", EncodePng(RgbPicture::Filled({100, 400}, 9)));
  const std::vector<DetectedBox> boxes = {{10, 10, 200, 20, 0.9, 1}};
  const auto target = Target(ImageFit::kStretch);
  const auto of_file = BoxesOfInput(boxes, folder.File("a.png"), target);
  ASSERT_TRUE(of_file.ok()) << of_file.status().message();
  EXPECT_DOUBLE_EQ((*of_file)[0].x1, 40);
  EXPECT_DOUBLE_EQ((*of_file)[0].x2, 400);  // cut at the edge
  EXPECT_DOUBLE_EQ((*of_file)[0].y2, 40);
  EXPECT_DOUBLE_EQ((*BoxesOfInput(boxes, "rows.npz[0]", target))[0].x2, 100);
  EXPECT_DOUBLE_EQ((*BoxesOfInput(boxes, "rows.npz[0]", std::nullopt))[0].x2, 200);
  EXPECT_FALSE(BoxesOfInput(boxes, folder.File("gone.png"), target).ok());
}

// The outline is of the box's pixels; inside and outside stay.
TEST(BoxWriterTest, OutlinesLieInsideOfTheirBoxes) {
  RgbPicture picture = RgbPicture::Filled({40, 40}, 9);
  const std::vector<TitledBox> boxes = {{{10, 8, 30, 28, 1, 0}, ""}};
  DrawBoxes(boxes, picture);
  for (int64_t y = 0; y < 40; ++y) {
    for (int64_t x = 0; x < 40; ++x) {
      const bool in_box = x >= 10 && x < 30 && y >= 8 && y < 28;
      const bool inner = x >= 12 && x < 28 && y >= 10 && y < 26;
      EXPECT_EQ(picture.At(y, x)[0] != 9, in_box && !inner) << y << "," << x;
    }
  }
}

TEST(BoxWriterTest, BoxesAndTitlesBeyondTheEdgesAreCut) {
  RgbPicture picture = RgbPicture::Filled({10, 10}, 9);
  const std::vector<TitledBox> boxes = {{{-50, -50, 500, 500, 1, 12}, "a long title \u00e9"}};
  DrawBoxes(boxes, picture);
  EXPECT_EQ(picture.pixels.size(), 300u);
}

}  // namespace
}  // namespace ridge
