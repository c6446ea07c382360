#include "ridge/train/store/preprocessing_file.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

Preprocessing Example() {
  Preprocessing example;
  example.classes = {"a \"quoted\" one", "Z\xC3\xBCrich"};
  example.image = {{28, 32}, 1, ImageFit::kStretch, ResizeFilter::kNearest};
  TablePreprocessing& table = example.table.emplace();
  table.standardize = false;
  table.columns.resize(3);
  table.columns[0] = {"age", ColumnKind::kNumber, 1.0 / 3, 1e-300, {}, true};
  table.columns[1] = {"on", ColumnKind::kBoolean, 0.1, 0.3, {}, false};
  table.columns[2] = {"color", ColumnKind::kCategory, 0, 0, {"blue", "red"}, false};
  table.label = {"city", LabelKind::kClass};
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
  text = PreprocessingToJson(Example());
  text.replace(text.find("28"), 2, "99999999999");
  EXPECT_EQ(message(text), "p.json: cannot be read: height is 99999999999; it must be 1 to 16384");
}

}  // namespace
}  // namespace ridge
