// The law: the survey counts what was written, whatever the number of threads.
#include "ridge/data/survey.h"

#include "ridge/data/test_files.h"

namespace ridge {
namespace {

class SurveyTest : public testing::Test {
 protected:
  DataSurvey Survey(const std::string& spec, int threads = 1) {
    const auto splits = OpenData(spec);
    EXPECT_TRUE(splits.ok()) << splits.status().message();
    SurveyOptions options;
    options.threads = threads;
    auto survey = SurveyData(*splits, options);
    EXPECT_TRUE(survey.ok()) << survey.status().message();
    return *survey;
  }

  TempFolder folder_;
};

TEST_F(SurveyTest, CountsClassesRangesAndMissingCells) {
  folder_.Write("t.csv", "length,colour,kind\n1,red,a\n,blue,b\n5,red,a\n-2,red,a\n");
  for (const int threads : {1, 3}) {
    const DataSurvey survey = Survey("csv:" + folder_.File("t.csv"), threads);
    ASSERT_EQ(survey.sets.size(), 1U);
    const SetSurvey& set = survey.sets[0];
    EXPECT_EQ(set.samples, 4);
    EXPECT_TRUE(survey.whole());
    ASSERT_EQ(set.classes.size(), 2U);
    EXPECT_EQ(set.classes[0].name, "a");
    EXPECT_EQ(set.classes[0].samples, 3);
    EXPECT_EQ(set.classes[1].samples, 1);
    ASSERT_EQ(set.columns.size(), 2U);
    EXPECT_EQ(set.columns[0].missing, 1);
    EXPECT_NEAR(set.columns[0].least, -2, 1e-6);
    EXPECT_NEAR(set.columns[0].most, 5, 1e-6);
    EXPECT_EQ(set.columns[1].counts, (std::vector<int64_t>{1, 3}));
    EXPECT_TRUE(survey.duplicates.empty());
  }
}

TEST_F(SurveyTest, EqualSamplesAreFoundWithinAndBetweenSets) {
  std::filesystem::create_directories(folder_.File("train"));
  std::filesystem::create_directories(folder_.File("test"));
  folder_.Write("train/a.txt", "one\ntwo\none\n");
  folder_.Write("train/b.txt", "three\n");
  folder_.Write("test/b.txt", "two\nfour\n");
  const DataSurvey survey = Survey("text:" + folder_.path());
  ASSERT_EQ(survey.duplicates.size(), 2U);
  const DuplicateSurvey &within = survey.duplicates[0], &between = survey.duplicates[1];
  EXPECT_EQ(within.in, "training");
  EXPECT_EQ(within.of, "training");
  EXPECT_EQ(within.samples, 1);
  EXPECT_EQ(within.other_labels, 0);
  EXPECT_EQ(between.in, "test");
  EXPECT_EQ(between.of, "training");
  EXPECT_EQ(between.samples, 1);
  EXPECT_EQ(between.other_labels, 1);
  ASSERT_EQ(between.first.size(), 1U);
  EXPECT_EQ(between.first[0].a, folder_.File("test/b.txt") + ":1");
  EXPECT_EQ(between.first[0].b, folder_.File("train/a.txt") + ":2");
}

}  // namespace
}  // namespace ridge
