#include "ridge/observe/class_counts.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ridge/observe/regression_sums.h"

namespace ridge {
namespace {

void Add(ClassCounts& counts, int64_t index, int64_t label, const std::vector<double>& logits) {
  counts.Add(index, label, logits);
}

// IoU of sklearn.metrics.jaccard_score: 2/3, 1/3, 1/2.
TEST(ClassCountsTest, PixelsAreCountedByWhatWasSaid) {
  ClassCounts counts(4);
  const int64_t labels[] = {0, 0, 0, 1, 1, 2, -100, 4}, said[] = {0, 0, 1, 1, 2, 2, 0, 0};
  for (size_t i = 0; i < 8; ++i) counts.AddSaid(labels[i], said[i]);
  EXPECT_EQ(counts.samples(), 6);
  EXPECT_DOUBLE_EQ(*counts.Iou(0), 2.0 / 3);
  EXPECT_DOUBLE_EQ(*counts.Iou(1), 1.0 / 3);
  EXPECT_DOUBLE_EQ(*counts.Iou(2), 1.0 / 2);
  EXPECT_FALSE(counts.Iou(3).has_value());
  EXPECT_DOUBLE_EQ(*counts.MeanIou(), 0.5);
  EXPECT_DOUBLE_EQ(*counts.MacroF1(), (0.8 + 0.5 + 2.0 / 3) / 3);
  EXPECT_TRUE(counts.wrong().empty());
}

// y_true = 0 0 0 1 1 2, y_pred = 0 0 1 1 2 2; class 3 is empty.
// sklearn 1.5 classification_report: 0: 1, 2/3, 0.8; 1: 0.5, 0.5, 0.5; 2: 0.5, 1, 2/3.
ClassCounts Sample() {
  ClassCounts counts(4);
  const int64_t labels[] = {0, 0, 0, 1, 1, 2}, said[] = {0, 0, 1, 1, 2, 2};
  for (int64_t i = 0; i < 6; ++i) {
    std::vector<double> logits(4, 0);
    logits[static_cast<size_t>(said[i])] = static_cast<double>(i + 1);
    Add(counts, i, labels[i], logits);
  }
  return counts;
}

TEST(ClassCountsTest, TheMetricsAreThoseOfScikitLearn) {
  const ClassCounts counts = Sample();
  EXPECT_EQ(counts.matrix(),
            (std::vector<int64_t>{2, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0}));
  EXPECT_DOUBLE_EQ(*counts.Accuracy(), 4.0 / 6);
  EXPECT_DOUBLE_EQ(*counts.Precision(0), 1);
  EXPECT_DOUBLE_EQ(*counts.Recall(0), 2.0 / 3);
  EXPECT_DOUBLE_EQ(*counts.F1(0), 0.8);
  EXPECT_DOUBLE_EQ(*counts.Precision(1), 0.5);
  EXPECT_DOUBLE_EQ(*counts.F1(2), 2.0 / 3);
  EXPECT_DOUBLE_EQ(*counts.MacroF1(), (0.8 + 0.5 + 2.0 / 3) / 3);
}

TEST(ClassCountsTest, AClassWithoutSamplesHasNoNumbers) {
  const ClassCounts counts = Sample();
  EXPECT_FALSE(counts.Precision(3));
  EXPECT_FALSE(counts.Recall(3));
  EXPECT_FALSE(counts.F1(3));
  EXPECT_FALSE(ClassCounts(3).MacroF1());
  EXPECT_FALSE(ClassCounts(3).Accuracy());
}

TEST(ClassCountsTest, AClassNeverSaidHasF1Zero) {
  ClassCounts counts(2);
  Add(counts, 0, 1, {1, 0});
  EXPECT_FALSE(counts.Precision(1));
  EXPECT_DOUBLE_EQ(*counts.F1(1), 0);
  EXPECT_DOUBLE_EQ(*counts.MacroF1(), 0);
}

TEST(ClassCountsTest, TheMostConfidentErrorsComeFirst) {
  ClassCounts counts(2);
  for (int i = 0; i < 50; ++i) Add(counts, i, 0, {0, static_cast<double>(i % 30)});
  ASSERT_EQ(counts.wrong().size(), ClassCounts::kMostWrong);
  EXPECT_EQ(counts.wrong()[0].index, 29);
  EXPECT_EQ(counts.wrong()[0].said, 1);
  EXPECT_DOUBLE_EQ(counts.wrong()[19].probability, 1 / (1 + std::exp(-15.0)));
}

TEST(ClassCountsTest, TheLabelIsAmongTheFiveLargest) {
  ClassCounts counts(7);
  Add(counts, 0, 4, {9, 8, 7, 6, 5, 4, 3});  // fifth
  Add(counts, 1, 5, {9, 8, 7, 6, 5, 4, 3});  // sixth
  Add(counts, 2, 5, {1, 1, 1, 1, 1, 1, 1});  // of equals the first ones
  EXPECT_DOUBLE_EQ(*counts.TopFive(), 1.0 / 3);
  EXPECT_FALSE(ClassCounts(5).TopFive());
}

TEST(ClassCountsTest, NanIsSaidWithoutConfidence) {
  ClassCounts counts(3);
  Add(counts, 0, 0, {1, NAN, 2});
  EXPECT_EQ(counts.Said(1), 1);
  EXPECT_EQ(counts.wrong()[0].probability, 0);
}

TEST(ClassCountsTest, ALabelThatIsNoClassIsLeftOut) {
  ClassCounts counts(3);
  Add(counts, 0, -100, {1, 2, 3});
  Add(counts, 1, 3, {1, 2, 3});
  EXPECT_EQ(counts.samples(), 0);
}

// sklearn.metrics: y_true = [3, -0.5, 2, 7], y_pred = [2.5, 0, 2, 8] in the manual of r2_score.
TEST(RegressionSumsTest, TheMetricsAreThoseOfScikitLearn) {
  RegressionSums sums(1);
  const double t[] = {3, -0.5, 2, 7}, p[] = {2.5, 0, 2, 8};
  for (int i = 0; i < 4; ++i) sums.Add({&p[i], 1}, {&t[i], 1});
  EXPECT_DOUBLE_EQ(*sums.Mse(), 0.375);
  EXPECT_DOUBLE_EQ(*sums.Rmse(), std::sqrt(0.375));
  EXPECT_DOUBLE_EQ(*sums.Mae(), 0.5);
  EXPECT_NEAR(*sums.R2(), 0.948608137, 1e-9);
}

TEST(RegressionSumsTest, EqualTargetsHaveNoR2) {
  RegressionSums sums(1);
  const double one = 1, two = 2;
  for (int i = 0; i < 3; ++i) sums.Add({&one, 1}, {&two, 1});
  EXPECT_FALSE(sums.R2());
  EXPECT_DOUBLE_EQ(*sums.Mae(), 1);
}

TEST(RegressionSumsTest, AMeanFarFromZeroCostsNoDigits) {
  RegressionSums sums(1);
  for (int i = 0; i < 100; ++i) {
    const double t = 1e9 + i % 2, p = t + 0.5;
    sums.Add({&p, 1}, {&t, 1});
  }
  EXPECT_NEAR(*sums.R2(), 0, 1e-6);
}

}  // namespace
}  // namespace ridge
