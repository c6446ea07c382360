#include "ridge/observe/evaluation_record.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ridge {
namespace {

EvaluationRecord Record() {
  EvaluationRecord record;
  record.data = "test";
  record.step = 7;
  record.samples = 3;
  record.loss = NAN;
  record.accuracy = 0.5;
  record.metrics = {{"f1_macro", 0.25}};
  record.classes = {{"a,b", 2, 1, 1, 1.0, 0.5, 2.0 / 3},
                    {"\"x\"", 1, 2, 0, 0.0, 0.0, std::nullopt}};
  record.confusion = {1, 1, 1, 0};
  record.wrong = {{4, "t.csv:6", "a,b", "\"x\"", 0.75, Thumbnail{2, 1, 1, {0, 255}}}};
  return record;
}

TEST(EvaluationRecordTest, ComesBackFromItsJson) {
  const Result<EvaluationRecord> back = RecordFromJson(RecordToJson(Record()), "f");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_TRUE(std::isnan(back->loss));
  EXPECT_EQ(RecordToJson(*back), RecordToJson(Record()));
  EXPECT_EQ(back->wrong[0].picture->pixels, (std::vector<uint8_t>{0, 255}));
  EXPECT_FALSE(back->classes[1].f1);
}

TEST(EvaluationRecordTest, ClassesOfBoxesComeBackWithTheirPrecisions) {
  EvaluationRecord record;
  record.boxes = true;
  record.classes.resize(2);
  record.classes[0].name = "cat";
  record.classes[0].support = 5;
  record.classes[0].ap50 = 0.75;
  record.classes[0].ap50_95 = 0.5;
  const Result<EvaluationRecord> back = RecordFromJson(RecordToJson(record), "f");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_TRUE(back->boxes);
  EXPECT_EQ(back->classes[0].ap50, 0.75);
  EXPECT_EQ(back->classes[0].ap50_95, 0.5);
  EXPECT_FALSE(back->classes[1].ap50);
  EXPECT_EQ(RecordToJson(*back), RecordToJson(record));
}

TEST(EvaluationRecordTest, RefusesWhatIsNone) {
  for (const char* text : {"", "[]", "{}", "{\"data\":1}"})
    EXPECT_EQ(RecordFromJson(text, "f").status().code(), ErrorCode::kInvalidData) << text;
  std::string skewed = RecordToJson(Record());
  skewed.replace(skewed.find("\"confusion\": ["), 14, "\"confusion\": [[5],");
  EXPECT_FALSE(RecordFromJson(skewed, "f").ok());
}

TEST(EvaluationRecordTest, APictureOfAnotherSizeIsNone) {
  std::string text = RecordToJson(Record());
  text.replace(text.find("\"width\": 2"), 10, "\"width\": 3");
  const Result<EvaluationRecord> back = RecordFromJson(text, "f");
  ASSERT_TRUE(back.ok());
  EXPECT_FALSE(back->wrong[0].picture);
}

TEST(EvaluationRecordTest, TheConfusionMatrixIsACsvTable) {
  EXPECT_EQ(ConfusionToCsv(Record()),
            "label,\"a,b\",\"\"\"x\"\"\"\n\"a,b\",1,1\n\"\"\"x\"\"\",1,0\n");
}

}  // namespace
}  // namespace ridge
