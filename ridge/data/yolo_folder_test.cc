#include "ridge/data/yolo_folder.h"

#include <cstring>
#include <filesystem>

#include "ridge/core/files.h"
#include "ridge/data/augment_source.h"
#include "ridge/data/image/encode.h"
#include "ridge/data/test_files.h"
#include "ridge/data/yolo_format.h"

namespace ridge {
namespace {

std::string LabelError(const std::string& text) { return Message(ParseYoloLabels(text)); }
std::string NamesError(const std::string& text) { return Message(ParseYoloNames(text)); }
using Names = std::vector<std::string>;

TEST(YoloFormatTest, ALabelIsACentreAndASizeOrAnOutline) {
  const auto boxes = ParseYoloLabels("1 0.5 0.25 0.5 0.25\r\n\n 0\t0 0 .5 0 0.25 1 \n");
  ASSERT_TRUE(boxes.ok()) << boxes.status().message();
  EXPECT_EQ(*boxes, (std::vector<ObjectBox>{{0.25, 0.125, 0.75, 0.375, 1}, {0, 0, 0.5, 1, 0}}));
}

TEST(YoloFormatTest, ABoxIsCutAtTheEdgesAndOneWithoutAnAreaIsNone) {
  const auto boxes = ParseYoloLabels("0 0 0 1 0.5\n0 0.5 0.5 0 0.5\n3.0 1.005 1 0.5 0.5\n");
  ASSERT_TRUE(boxes.ok()) << boxes.status().message();
  ASSERT_EQ(boxes->size(), 2u);
  EXPECT_EQ((*boxes)[0], (ObjectBox{0, 0, 0.5, 0.25, 0}));
  EXPECT_EQ((*boxes)[1].x2, 1);
  EXPECT_EQ((*boxes)[1].object_class, 3);
}

TEST(YoloFormatTest, AWrongLabelIsNamedByItsLine) {
  EXPECT_EQ(LabelError("0 0.5 0.5 0.5 0.5\n0 0.5 0.5 0.5\n"),
            "2: has 4 words; it must be a class and 4 numbers, or a class and the 3 or more points "
            "of an outline");
  EXPECT_EQ(LabelError("-1 0 0 1 1"),
            "1: the class is '-1'; it must be a whole number from 0 to 65535");
  EXPECT_EQ(LabelError("0.5 0 0 1 1"),
            "1: the class is '0.5'; it must be a whole number from 0 to 65535");
  EXPECT_EQ(LabelError("1e9 0 0 1 1"),
            "1: the class is '1e9'; it must be a whole number from 0 to 65535");
  for (const char* part : {"1.5", "nan", "inf", "x", "-0.2", "0.5x"}) {
    EXPECT_EQ(LabelError(std::string("0 0 ") + part + " 1 1"),
              std::string("1: '") + part + "' must be a number from 0 to 1, a part of the picture");
  }
  std::string many;
  for (int64_t i = 0; i <= kMostBoxes; ++i) many += "0 0.5 0.5 1 1\n";
  EXPECT_EQ(LabelError(many), "4097: is more than 4096 objects");
}

TEST(YoloFormatTest, NamesStandInListsAndMaps) {
  EXPECT_EQ(*ParseYoloNames("nc: 2\nnames: [a, 'b, c', \"d\"] # three\n"),
            (Names{"a", "b, c", "d"}));
  EXPECT_EQ(*ParseYoloNames("names: [a,\n  b,\n]\nnc: 2"), (Names{"a", "b"}));
  EXPECT_EQ(*ParseYoloNames("names: {1: b, 0: a}"), (Names{"a", "b"}));
  EXPECT_EQ(*ParseYoloNames("train: x\nnames:\n  0: a # no\n\n  1: 'b # yes'\nval: y\n"),
            (Names{"a", "b # yes"}));
  EXPECT_EQ(*ParseYoloNames("names:\n- a\n- b\nnc: 2\n"), (Names{"a", "b"}));
  EXPECT_EQ(*ParseYoloNames("names:\r\n  - a\r\n"), (Names{"a"}));
  EXPECT_EQ(*ParseYoloNames("path: x\n"), Names());
}

TEST(YoloFormatTest, WrongNamesAreRefusedWithTheirLine) {
  EXPECT_EQ(NamesError("nc: 1\nnames: cat\n"),
            "2: names must be a list, or a map of numbers to names");
  EXPECT_EQ(NamesError("names: [a,\nb"), "2: names lack their ']'");
  EXPECT_EQ(NamesError("names:\n  cat: 0\n"), "2: 'cat: 0' must be NUMBER: NAME");
  EXPECT_EQ(NamesError("names:\n  0: a\n  0: b\n"), "3: class 0 comes twice");
  EXPECT_EQ(NamesError("names:\n  0: a\n  99999999: b\n"),
            "3: class 99999999; it must be from 0 to 65535");
  EXPECT_EQ(NamesError("names: {0: a, 2: c}"), "1: class 1 has no name, and class 2 has");
  EXPECT_EQ(NamesError("names: [a,,b]"), "1: class 1 has no name");
}

class YoloFolderTest : public testing::Test {
 protected:
  void Put(const std::string& path, const std::string& bytes) {
    std::filesystem::create_directories(std::filesystem::path(folder_.File(path)).parent_path());
    folder_.Write(path, bytes);
  }
  // 8 wide, 4 high.
  void Picture(const std::string& path) { Put(path, EncodePng(RgbPicture::Filled({4, 8}, 100))); }
  Result<DataSplits> Open(const std::string& options = "", DataOptions data = {}) {
    if (data.model_inputs.empty()) data.model_inputs = {{"image", {DType::kF32, {3, 16, 16}}}};
    return OpenData("yolo:" + folder_.path() + options, data);
  }
  std::string Error(const std::string& options = "", const DataOptions& data = {}) {
    std::string text = Message(Open(options, data));
    for (size_t at = 0; (at = text.find(folder_.path())) != std::string::npos;)
      text.replace(at, folder_.path().size(), "DIR");
    return text;
  }

  TempFolder folder_;
};

std::vector<float> Boxes(const Source& source, int64_t index) {
  std::vector<float> boxes(static_cast<size_t>(source.fields()[1].type.elements()));
  EXPECT_TRUE(source.ReadOne(index, 1, boxes.data()).ok());
  return boxes;
}
std::vector<int64_t> Classes(const Source& source, int64_t index) {
  std::vector<int64_t> classes(static_cast<size_t>(source.fields()[2].type.elements()));
  EXPECT_TRUE(source.ReadOne(index, 2, classes.data()).ok());
  return classes;
}

TEST_F(YoloFolderTest, BoxesAreInPixelsOfTheStretchedPictureAndPadded) {
  Picture("images/train/a.png");
  Picture("images/train/deep/b.png");
  Picture("images/val/c.png");
  Put("labels/train/a.txt", "1 0.5 0.5 0.5 0.5\n0 0.25 0.25 0.5 0.5\n");
  Put("labels/val/c.txt", "1 0.5 0.5 1 1\n");
  Put("data.yaml", "names: [cat, dog]\n");
  const auto splits = Open();
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  const Source& train = *splits->train;
  EXPECT_EQ(TypeToString(train.fields()[0].type), "u8[16,16,3]");
  EXPECT_EQ(TypeToString(train.fields()[1].type), "f32[2,4]");
  EXPECT_EQ(Boxes(train, 0), (std::vector<float>{4, 4, 12, 12, 0, 0, 8, 8}));
  EXPECT_EQ(Classes(train, 0), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(Boxes(train, 1), (std::vector<float>(8, 0)));
  EXPECT_EQ(Classes(train, 1), (std::vector<int64_t>{-1, -1}));
  EXPECT_EQ(Classes(*splits->validation, 0), (std::vector<int64_t>{1, -1}));
  EXPECT_EQ(splits->sizes, (std::vector<ModelSize>{{"classes", 2}, {"boxes", 2}}));
  EXPECT_EQ(splits->preprocessing->classes, (Names{"cat", "dog"}));
}

// The picture of 8x4 is cropped to its middle 4x4: what is left of a box moves along.
TEST_F(YoloFolderTest, ACropCutsTheBoxesToo) {
  Picture("images/a.png");
  Put("labels/a.txt", "0 0.5 0.5 1 0.5\n1 0.1 0.5 0.2 0.5\n2 0.375 0.5 0.25 1\n");
  const auto splits = Open(",fit=crop,boxes=3");
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(Boxes(*splits->train, 0), (std::vector<float>{0, 4, 16, 12, 0, 0, 8, 16, 0, 0, 0, 0}));
  EXPECT_EQ(Classes(*splits->train, 0), (std::vector<int64_t>{0, 2, -1}));
}

TEST_F(YoloFolderTest, SetsMayHaveTheFoldersInside) {
  Picture("train/images/a.png");
  Picture("valid/images/b.png");
  Put("train/labels/a.txt", "3 0.5 0.5 1 1\n");
  const auto splits = Open();
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(splits->validation->size(), 1);
  EXPECT_EQ(splits->preprocessing->classes, (Names{"0", "1", "2", "3"}));
}

TEST_F(YoloFolderTest, TheClassesAreThoseOfTheRunByTheirNames) {
  Picture("images/a.png");
  Put("labels/a.txt", "0 0.5 0.5 1 1\n");
  Put("data.yaml", "names: [dog]\n");
  auto run = std::make_shared<Preprocessing>();
  run->classes = {"cat", "dog"};
  DataOptions data;
  data.preprocessing = run;
  const auto splits = Open("", data);
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(Classes(*splits->train, 0), (std::vector<int64_t>{1}));
  run->classes = {"cat"};
  EXPECT_EQ(Error("", data), "yolo:DIR: its class 'dog' is none of the run's: cat");
}

TEST_F(YoloFolderTest, MistakesNameTheFileAndTheLine) {
  EXPECT_EQ(Error(), "yolo:DIR: DIR has no folder images/train, train/images or images");
  Picture("images/train/a.png");
  EXPECT_EQ(Error(), "yolo:DIR: none of its pictures has a box");
  Put("labels/train/a.txt", "0 0.5 0.5 1 1\n0 0.5\n");
  EXPECT_EQ(Error(),
            "DIR/labels/train/a.txt:2: has 2 words; it must be a class and 4 numbers, or a class "
            "and the 3 or more points of an outline");
  Put("labels/train/a.txt", "2 0.5 0.5 1 1\n1 0.5 0.5 0.5 0.5\n");
  Put("data.yaml", "names: [cat, dog]\n");
  EXPECT_EQ(Error(), "DIR/labels/train/a.txt: has class 2; DIR/data.yaml names 2, 0 to 1");
  Put("data.yaml", "names: {0: a, 0: b}\n");
  EXPECT_EQ(Error(), "DIR/data.yaml:1: class 0 comes twice");
  Put("data.yaml", "nc: 3\n");
  EXPECT_EQ(Error(",boxes=1"),
            "DIR/labels/train/a.txt: has 2 boxes, 1 are taken. hint: boxes=2 behind the data, and "
            "in the model");
  EXPECT_EQ(Error(",boxes=0"), "data 'yolo:DIR,boxes=0': boxes is '0'; it must be from 1 to 4096");
}

TEST_F(YoloFolderTest, BadPicturesAndLabelsAreSkippedWhereTheRunBearsThem) {
  Picture("images/a.png");
  Picture("images/b.png");
  Put("images/c.png", "no picture");
  Put("labels/a.txt", "0 1\n");
  Put("labels/b.txt", "0 0.5 0.5 1 1\n");
  DataOptions data;
  data.bad_records = std::make_shared<BadRecords>(*BadRecordsPolicy::Parse("skip:2"));
  const auto splits = Open("", data);
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(splits->train->size(), 1);
  EXPECT_EQ(Classes(*splits->train, 0), (std::vector<int64_t>{0}));
  EXPECT_EQ(data.bad_records->count(), 2);
}

TEST_F(YoloFolderTest, BoxesFlipWithTheirPicture) {
  RgbPicture picture = RgbPicture::Filled({16, 16}, 0);
  for (int64_t y = 4; y < 8; ++y) {
    for (int64_t x = 2; x < 5; ++x) std::memset(picture.At(y, x), 255, 3);
  }
  Put("images/a.png", EncodePng(picture));
  Put("labels/a.txt", "0 0.21875 0.375 0.1875 0.25\n");
  const auto splits = Open();
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  const auto augmented = AugmentTraining(splits->train, "flip,vflip,jitter:0.1", 3);
  ASSERT_TRUE(augmented.ok()) << augmented.status().message();
  int moved = 0;
  for (int64_t epoch = 0; epoch < 16; ++epoch) {
    std::vector<char> scratch(static_cast<size_t>((*augmented)->scratch_bytes()));
    std::vector<uint8_t> pixels(16 * 16 * 3);
    std::vector<float> box(4);
    ASSERT_TRUE((*augmented)->Read({0, epoch}, 0, scratch, pixels.data()).ok());
    ASSERT_TRUE((*augmented)->Read({0, epoch}, 1, scratch, box.data()).ok());
    for (int64_t i = 0; i < 256; ++i) {
      const auto x = static_cast<float>(i % 16), y = static_cast<float>(i / 16);
      const bool inside = x >= box[0] && x < box[2] && y >= box[1] && y < box[3];
      ASSERT_EQ(pixels[static_cast<size_t>(3 * i)] > 100, inside) << epoch << " " << i;
    }
    moved += box[0] != 2 || box[1] != 4 ? 1 : 0;
  }
  EXPECT_GT(moved, 4);
  EXPECT_LT(moved, 16);
}

TEST_F(YoloFolderTest, TransformsThatLoseBoxesAreRefused) {
  Picture("images/a.png");
  Put("labels/a.txt", "0 0.5 0.5 1 1\n");
  const auto splits = Open();
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  const auto error = [&](const std::string& list) {
    return Message(AugmentTraining(splits->train, list, 0));
  };
  EXPECT_EQ(
      error("flip,rotate:9"),
      "--augment is 'flip,rotate:9': rotate moves no boxes; of pictures with boxes take flip, "
      "vflip, jitter, grey, blur, erase");
  EXPECT_EQ(error("mixup:0.2"),
            "--augment is 'mixup:0.2': mixup and cutmix mix labels; pictures with boxes have none");
}

}  // namespace
}  // namespace ridge
