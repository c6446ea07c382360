#include "ridge/train/store/preprocessing_file.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

Preprocessing Example() {
  Preprocessing example;
  example.classes = {"a \"quoted\" one", "Z\xC3\xBCrich"};
  TablePreprocessing& table = example.table.emplace();
  table.standardize = false;
  table.columns.resize(3);
  table.columns[0] = {"age", ColumnKind::kNumber, 1.0 / 3, 1e-300, {}, true};
  table.columns[1] = {"on", ColumnKind::kBoolean, 0.1, 0.3, {}, false};
  table.columns[2] = {"color", ColumnKind::kCategory, 0, 0, {"blue", "red"}, false};
  table.label = {"city", LabelKind::kClass};
  PicturePreprocessing& pictures = example.pictures.emplace();
  pictures.target = {{224, 160}, 3, ImageFit::kStretch, ResizeFilter::kNearest};
  pictures.normalization = {{0.1, 1.0 / 3, 0.5}, {1e-3, 0.2, 1}};
  example.clips = {1.0 / 3, /*every=*/0, /*frames=*/16, /*stride=*/5};
  example.points = {300, PointPick::kFarthest, PointScale::kNone};
  SoundTarget& sounds = example.sounds.emplace();
  sounds = {22050, 33333, 1, MelSettings(), 0.1, 1.0 / 7};
  sounds.mel->low = 1.0 / 3;
  sounds.mel->level = MelLevel::kLog;
  example.spelling = {true, {" ", "a", "\xC3\xA9"}};
  return example;
}

TEST(PreprocessingFile, ComesBackBitForBit) {
  const Preprocessing example = Example();
  const auto back = PreprocessingFromJson(PreprocessingToJson(example), "p.json");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(*back, example);
  const auto empty = PreprocessingFromJson(PreprocessingToJson(Preprocessing()), "p.json");
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(*empty, Preprocessing());
}

TEST(PreprocessingFile, RefusesWhatItCannotRead) {
  const auto message = [](const std::string& text) {
    const auto read = PreprocessingFromJson(text, "p.json");
    return read.ok() ? "ok" : read.status().message();
  };
  EXPECT_EQ(message("{\"version\": 2}"), "p.json: is of format version 2; this program reads 1");
  EXPECT_TRUE(message("{").starts_with("p.json: cannot be read: ")) << message("{");
  std::string text = PreprocessingToJson(Example());
  text.replace(text.find("\"boolean\""), 9, "\"colour\"");
  EXPECT_EQ(message(text), "p.json: cannot be read: kind 'colour'");
  const auto with = [&](const std::string& what, const std::string& other) {
    std::string changed = PreprocessingToJson(Example());
    changed.replace(changed.find(what), what.size(), other);
    return message(changed).substr(std::string("p.json: cannot be read: ").size());
  };
  EXPECT_EQ(with("\"height\": 224", "\"height\": 0"), "height of pictures is 0");
  EXPECT_EQ(with("\"height\": 224", "\"height\": 2.5"), "height of pictures is 2.5");
  EXPECT_EQ(with("\"width\": 160", "\"width\": 99999999999"), "width of pictures is 99999999999");
  EXPECT_EQ(with("\"channels\": 3", "\"channels\": 2"), "pictures have 2 channels");
  EXPECT_EQ(with("\"channels\": 3", "\"channels\": 1"),
            "pictures of 1 channels have 3 means and 3 deviations");
  EXPECT_EQ(with("0.001", "0"), "a deviation of pictures is 0");
  EXPECT_EQ(with("\"fit\"", "\"rotate\": true, \"fit\""),
            "pictures have a key that this program does not know");
  EXPECT_EQ(with("\"frames\": 16", "\"frames\": 0"), "clips have 0 frames");
  EXPECT_EQ(with("\"stride\": 5", "\"stride\": 0"), "the stride of clips is 0");
  EXPECT_EQ(with("\"stride\"", "\"gap\": 1, \"stride\""),
            "clips have a key that this program does not know");
  EXPECT_EQ(with("\"nearest\"", "\"lanczos\""), "kind 'lanczos'");
  EXPECT_EQ(with("\"count\": 300", "\"count\": 0"), "clouds have 0 points");
  EXPECT_EQ(with("\"pick\": \"farthest\"", "\"pick\": \"near\""), "kind 'near'");
  EXPECT_EQ(with("\"rate\": 22050", "\"rate\": 0"), "the rate of sounds is 0");
  EXPECT_EQ(with("\"samples\": 33333", "\"samples\": 200"),
            "sounds: 200 samples are too few for frames of 400");
  EXPECT_EQ(with("\"hop\"", "\"hops\": 3, \"hop\""),
            "sounds have a key that this program does not know");
  EXPECT_EQ(with("\"a\",", "\"ab\","), "'ab' is not one letter");
  EXPECT_EQ(with("\"lower\"", "\"upper\": 1, \"lower\""),
            "a spelling has a key that this program does not know");
}

}  // namespace
}  // namespace ridge
