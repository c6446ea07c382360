#include "ridge/data/mask_folder.h"

#include <gmock/gmock.h>
#include <png.h>

#include <filesystem>
#include <thread>

#include "ridge/core/files.h"
#include "ridge/data/augment_source.h"
#include "ridge/data/image/mask_picture.h"
#include "ridge/data/survey.h"
#include "ridge/data/test_files.h"

namespace ridge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void Append(png_structp png, png_bytep data, size_t count) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<char*>(data), count);
}

// A grey PNG of 1, 2, 4, 8 or 16 bits; a byte of `levels` a pixel, in 16 bits the upper one.
std::string GreyPng(int64_t height, int64_t width, int bits, const std::vector<uint8_t>& levels) {
  std::string bytes;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &bytes, Append, nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), bits,
               PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  if (bits < 8) png_set_packing(png);
  for (int64_t y = 0; y < height; ++y) {
    std::vector<uint8_t> row;
    for (int64_t x = 0; x < width; ++x) {
      row.push_back(levels[static_cast<size_t>(y * width + x)]);
      if (bits == 16) row.push_back(0);
    }
    png_write_row(png, row.data());
  }
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

// A picture whose red is the number of the pixel: what moves it can be read off it.
std::string NumberedPng(int64_t height, int64_t width) {
  RgbPicture picture = RgbPicture::Filled({height, width}, 0);
  for (int64_t p = 0; p < height * width; ++p)
    picture.pixels[static_cast<size_t>(3 * p)] = static_cast<uint8_t>(p);
  return EncodePng(picture);
}

class MaskFolderTest : public testing::Test {
 protected:
  void Put(const std::string& path, const std::string& bytes) {
    std::filesystem::create_directories(std::filesystem::path(folder_.File(path)).parent_path());
    folder_.Write(path, bytes);
  }
  // A picture of 2x3 pixels with this mask.
  void PutPair(const std::string& name, const std::vector<uint8_t>& ids, int bits = 8) {
    Put("images/" + name + ".png", NumberedPng(2, 3));
    Put("masks/" + name + ".png", GreyPng(2, 3, bits, ids));
  }
  Result<DataSplits> Open(const std::string& options = ",size=2x3", DataOptions data = {}) {
    return OpenData("masks:" + folder_.path() + options, data);
  }
  std::string Error(const std::string& options = ",size=2x3") {
    return Plain(Message(Open(options)));
  }
  std::string Plain(std::string text) {
    for (size_t at = 0; (at = text.find(folder_.path())) != std::string::npos;)
      text.replace(at, folder_.path().size(), "DIR");
    return text;
  }
  TempFolder folder_;
};

std::vector<int64_t> Labels(const Source& source, SampleAt at) {
  std::vector<int64_t> labels(static_cast<size_t>(source.fields()[1].type.elements()));
  std::vector<char> scratch(static_cast<size_t>(source.scratch_bytes()));
  const Status status = source.Read(at, 1, scratch, labels.data());
  EXPECT_TRUE(status.ok()) << status.message();
  return labels;
}
std::vector<int64_t> Labels(const Source& source) { return Labels(source, {0}); }

std::vector<uint8_t> Pixels(const Source& source, SampleAt at) {
  std::vector<uint8_t> pixels(static_cast<size_t>(source.fields()[0].type.elements()));
  std::vector<char> scratch(static_cast<size_t>(source.scratch_bytes()));
  EXPECT_TRUE(source.Read(at, 0, scratch, pixels.data()).ok());
  return pixels;
}

TEST_F(MaskFolderTest, LevelsAndPaletteIndicesAreClasses) {
  PutPair("a", {0, 1, 2, 3, 2, 255});
  Put("images/deep/b.png", NumberedPng(2, 3));
  Put("masks/deep/b.PNG", EncodeMaskPng({2, 3}, std::vector<uint8_t>{3, 2, 1, 0, 255, 4}));
  const auto splits = Open();
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(TypeToString(splits->train->fields()[1].type), "i64[2,3]");
  EXPECT_EQ(splits->train->fields()[1].classes, 5);
  EXPECT_EQ(splits->sizes, (std::vector<ModelSize>{{"classes", 5}}));
  EXPECT_THAT(Labels(*splits->train), ElementsAre(0, 1, 2, 3, 2, -100));
  EXPECT_THAT(Labels(*splits->train, {1}), ElementsAre(3, 2, 1, 0, -100, 4));
}

TEST_F(MaskFolderTest, FewerBitsAreLevelsToo) {
  PutPair("a", {0, 1, 1, 0, 1, 0}, 1);
  PutPair("b", {0, 1, 2, 3, 2, 1}, 2);
  PutPair("c", {0, 15, 2, 3, 2, 1}, 4);
  const auto splits = Open();
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_THAT(Labels(*splits->train, {0}), ElementsAre(0, 1, 1, 0, 1, 0));
  EXPECT_THAT(Labels(*splits->train, {1}), ElementsAre(0, 1, 2, 3, 2, 1));
  EXPECT_THAT(Labels(*splits->train, {2}), ElementsAre(0, 15, 2, 3, 2, 1));
}

TEST_F(MaskFolderTest, MasksOf0And255AreBinary) {
  PutPair("a", {0, 255, 0, 0, 255, 255});
  PutPair("b", {0, 0, 0, 0, 0, 0});
  const auto splits = Open();
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(splits->preprocessing->masks, (MaskPreprocessing{2, true}));
  EXPECT_THAT(Labels(*splits->train), ElementsAre(0, 1, 0, 0, 1, 1));
  // A run's reading holds for other data.
  PutPair("a", {0, 1, 0, 0, 255, 1});
  PutPair("b", {0, 0, 0, 0, 0, 255});
  EXPECT_THAT(Labels(*Open()->train), ElementsAre(0, 1, 0, 0, -100, 1));
  DataOptions options;
  options.preprocessing = splits->preprocessing;
  EXPECT_THAT(Labels(*Open(",size=2x3", options)->train), ElementsAre(0, 1, 0, 0, 1, 1));
}

TEST_F(MaskFolderTest, NamesAndCountsCanBeSaid) {
  PutPair("a", {0, 1, 2, 0, 1, 2});
  EXPECT_EQ((*FactsBeforeModel("masks:" + folder_.path() + ",classes=9,size=32"))->sizes,
            (std::vector<ModelSize>{{"classes", 9}, {"image", 32}}));
  Put("classes.txt", "sky\r\nsea\n\nland\n");
  EXPECT_THAT(Open()->preprocessing->classes, ElementsAre("sky", "sea", "land"));
  Put("classes.txt", "sky\nsea\n");
  EXPECT_EQ(Error(), "DIR/classes.txt: names 2 classes; the masks have 3");
  EXPECT_EQ(Error(",classes=256"),
            "data 'masks:DIR,classes=256': classes is '256'; it must be a number from 1 to 255");
}

TEST_F(MaskFolderTest, SetsAreFoldersAndAFolderIsGuessed) {
  for (const char* set : {"train", "val"}) {
    Put(std::string(set) + "/images/a.png", NumberedPng(2, 3));
    Put(std::string(set) + "/masks/a.png", GreyPng(2, 3, 8, {0, 1, 2, 0, 1, 2}));
  }
  Put("val/masks/b.png", GreyPng(2, 3, 8, {0, 1, 2, 0, 1, 2}));
  const auto splits = OpenData(folder_.path());
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(splits->train->size(), 1);
  EXPECT_EQ(splits->validation->size(), 1);
  EXPECT_EQ(splits->test, nullptr);
  ASSERT_EQ(splits->notes.size(), 2U);
  EXPECT_EQ(Plain(splits->notes[0]),
            "masks:DIR: 1 mask is left out, as it has no picture: DIR/val/masks/b.png");
  EXPECT_EQ(Plain(splits->notes[1]), "data 'DIR': is read as masks:DIR");
}

TEST_F(MaskFolderTest, BadRecordsNameTheFileAndTheReason) {
  PutPair("a", {0, 1, 2, 0, 1, 2});
  Put("images/b.png", NumberedPng(2, 3));
  EXPECT_EQ(Error(), "DIR/images/b.png: has no mask DIR/masks/b.png");
  Put("masks/b.png", GreyPng(3, 2, 8, {0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(Error(),
            "DIR/masks/b.png: has 3x2 pixels (height x width); its picture DIR/images/b.png has "
            "2x3");
  Put("masks/b.png", NumberedPng(2, 3));
  EXPECT_EQ(Error(),
            "DIR/masks/b.png: is a PNG of 3 channels; a mask is a PNG of 8 bits or fewer, with a "
            "palette or grey");
  Put("masks/b.png", GreyPng(2, 3, 16, {0, 1, 2, 0, 1, 2}));
  EXPECT_THAT(Error(), HasSubstr("is a PNG of 16 bits; a mask is"));
  DataOptions options;
  options.bad_records = std::make_shared<BadRecords>(*BadRecordsPolicy::Parse("skip:1"));
  const auto skipped = Open(",size=2x3", options);
  ASSERT_TRUE(skipped.ok()) << skipped.status().message();
  EXPECT_EQ(skipped->train->size(), 1);
}

TEST_F(MaskFolderTest, ADamagedMaskAndAnUnknownClassAreFoundWhereTheyAreRead) {
  PutPair("a", {0, 1, 2, 0, 1, 7});
  const auto splits = Open(",size=2x3,classes=3");
  ASSERT_TRUE(splits.ok());
  std::vector<int64_t> labels(6);
  EXPECT_EQ(Plain(splits->train->ReadOne(0, 1, labels.data()).message()),
            "DIR/masks/a.png: has a pixel of class 7; the data have 3 classes, 0 to 2");
  std::string cut = GreyPng(2, 3, 8, {0, 1, 2, 0, 1, 2});
  cut.resize(cut.size() - 20);
  Put("masks/a.png", cut);
  EXPECT_THAT(Plain(Open()->train->ReadOne(0, 1, labels.data()).message()),
              HasSubstr("DIR/masks/a.png: its PNG data is damaged"));
}

TEST_F(MaskFolderTest, AFolderWithoutBothIsRefused) {
  Put("images/a.png", NumberedPng(2, 3));
  EXPECT_EQ(Error(""), "masks:DIR: neither DIR nor DIR/train holds the folders images and masks");
}

// The mask's ids number the pixels as the picture's red does, so that both must agree after every
// transform that moves pixels; where nothing is drawn over, both come from the same place.
TEST_F(MaskFolderTest, AMaskMovesWithItsPicture) {
  std::vector<uint8_t> ids;
  for (int i = 0; i < 14 * 16; ++i) ids.push_back(static_cast<uint8_t>(i));
  Put("images/a.png", NumberedPng(14, 16));
  Put("masks/a.png", GreyPng(14, 16, 8, ids));
  const auto splits = Open(",size=14x16,resize=nearest");
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  for (const char* list : {"flip,vflip", "crop:3", "rotate:30", "rrc", "rrc,flip,rotate:10",
                           "flip,erase:1", "crop:2,rotate:9,flip"}) {
    const SourcePtr source = *AugmentTraining(splits->train, list, 7);
    int moved = 0;
    for (int64_t epoch = 0; epoch < 8; ++epoch) {
      const std::vector<uint8_t> pixels = Pixels(*source, {0, epoch});
      const std::vector<int64_t> labels = Labels(*source, {0, epoch});
      for (size_t i = 0; i < labels.size(); ++i) {
        const int64_t red = pixels[3 * i];
        ASSERT_EQ(labels[i] < 0 ? 0 : labels[i], red) << list << " epoch " << epoch;
        moved += labels[i] == static_cast<int64_t>(i) ? 0 : 1;
      }
    }
    EXPECT_GT(moved, 0) << list;
  }
}

TEST_F(MaskFolderTest, ColoursAndBlurLeaveAMaskAlone) {
  PutPair("a", {0, 1, 2, 0, 1, 255});
  const auto splits = Open(",size=2x3");
  const SourcePtr source = *AugmentTraining(splits->train, "jitter:0.5,grey:1,blur", 7);
  EXPECT_EQ(Labels(*source, {0, 3}), Labels(*splits->train));
}

TEST_F(MaskFolderTest, RandAugmentMovesAMaskAsItsPicture) {
  std::vector<uint8_t> ids(20 * 20, 1);
  Put("images/a.png", EncodePng(RgbPicture::Filled({20, 20}, 200)));
  Put("masks/a.png", GreyPng(20, 20, 8, ids));
  const auto splits = Open(",size=20,classes=2");
  const SourcePtr source = *AugmentTraining(splits->train, "randaugment:3:25", 7);
  int beyond = 0;
  for (int64_t epoch = 0; epoch < 40; ++epoch) {
    const std::vector<int64_t> labels = Labels(*source, {0, epoch});
    for (const int64_t label : labels) {
      ASSERT_TRUE(label == 1 || label == -100);
      beyond += label == 1 ? 0 : 1;
    }
  }
  EXPECT_GT(beyond, 0);
}

TEST_F(MaskFolderTest, MixingIsRefused) {
  PutPair("a", {0, 1, 2, 0, 1, 2});
  for (const char* list : {"mixup:0.2", "flip,cutmix:1"}) {
    const auto mixed = AugmentTraining(Open()->train, list, 7);
    EXPECT_THAT(Message(mixed), HasSubstr("need a 'label' that is one class a sample")) << list;
  }
}

TEST_F(MaskFolderTest, ThreadsReadTheSameBits) {
  for (const char* name : {"a", "b", "c", "d"}) PutPair(name, {0, 1, 2, 0, 1, 255});
  const SourcePtr source = *AugmentTraining(Open(",size=8")->train, "rrc,flip,rotate:20", 3);
  std::vector<std::vector<int64_t>> alone;
  for (int64_t i = 0; i < 4; ++i) alone.push_back(Labels(*source, {i, 5}));
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int repeat = 0; repeat < 20; ++repeat)
        EXPECT_EQ(Labels(*source, {i, 5}), alone[static_cast<size_t>(i)]);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(MaskFolderTest, ASurveyCountsPixelsByClass) {
  PutPair("a", {0, 1, 2, 0, 1, 255});
  PutPair("b", {0, 0, 0, 0, 0, 2});
  const auto survey = SurveyData(*Open(), {});
  ASSERT_TRUE(survey.ok());
  const SetSurvey& set = survey->sets[0];
  EXPECT_TRUE(set.has_masks);
  EXPECT_EQ(set.ignored_pixels, 1);
  std::vector<std::pair<int64_t, int64_t>> counts;
  for (const ClassCount& c : set.classes) counts.emplace_back(c.pixels, c.samples);
  EXPECT_THAT(counts, ElementsAre(std::pair(7, 2), std::pair(2, 1), std::pair(2, 2)));
  ASSERT_EQ(survey->duplicates.size(), 1U);  // one picture, two masks
  EXPECT_EQ(survey->duplicates[0].other_labels, 1);
}

}  // namespace
}  // namespace ridge
