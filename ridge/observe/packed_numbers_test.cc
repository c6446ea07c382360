// What ranks count apart is what one counts of all samples.
#include "ridge/observe/packed_numbers.h"

#include <gtest/gtest.h>

#include <random>

#include "ridge/observe/average_precision.h"
#include "ridge/observe/class_counts.h"
#include "ridge/observe/edit_counts.h"
#include "ridge/observe/regression_sums.h"

namespace ridge {
namespace {

template <typename Counts>
Counts Merged(Counts to, const std::vector<Counts>& all) {
  for (const Counts& counts : all) {
    PackedNumbers numbers;
    counts.Pack(numbers);
    NumberReader from(numbers);
    to.Merge(from);
    EXPECT_THROW(from.Take(), Bug) << "something is left";
  }
  return to;
}

TEST(PackedNumbersTest, ClassesAreCountedTheSame) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> logit(-1, 1);
  ClassCounts whole(7);
  std::vector<ClassCounts> parts(3, ClassCounts(7));
  for (int64_t sample = 0; sample < 60; ++sample) {
    std::vector<double> logits(7);
    for (double& x : logits) x = logit(random);
    whole.Add(sample, sample % 7, logits);
    parts[static_cast<size_t>(sample % 3)].Add(sample, sample % 7, logits);
  }
  const ClassCounts merged = Merged(ClassCounts(7), parts);
  EXPECT_EQ(merged.Accuracy(), whole.Accuracy());
  EXPECT_EQ(merged.TopFive(), whole.TopFive());
  EXPECT_EQ(merged.MacroF1(), whole.MacroF1());
  EXPECT_EQ(merged.matrix(), whole.matrix());
  ASSERT_EQ(merged.wrong().size(), whole.wrong().size());
  for (size_t i = 0; i < whole.wrong().size(); ++i)
    EXPECT_EQ(merged.wrong()[i].index, whole.wrong()[i].index);
}

TEST(PackedNumbersTest, ErrorsOfARegressionAreSummedTheSame) {
  RegressionSums whole(2);
  std::vector<RegressionSums> parts(3, RegressionSums(2));  // the last one has seen nothing
  for (int i = 0; i < 20; ++i) {
    const std::vector<double> target = {i * 0.7, 5.0 - i}, said = {i * 0.6, 5.5 - i};
    whole.Add(said, target);
    parts[static_cast<size_t>(i % 2)].Add(said, target);
  }
  const RegressionSums merged = Merged(RegressionSums(2), parts);
  EXPECT_EQ(merged.samples(), 20);
  EXPECT_NEAR(*merged.Mse(), *whole.Mse(), 1e-12);
  EXPECT_NEAR(*merged.Mae(), *whole.Mae(), 1e-12);
  EXPECT_NEAR(*merged.R2(), *whole.R2(), 1e-12);
}

TEST(PackedNumbersTest, EditsAreCountedTheSame) {
  EditCounts whole;
  std::vector<EditCounts> parts(2);
  whole.AddText("a cat", "the cat");
  parts[0].AddText("a cat", "the cat");
  whole.AddText("dogs", "a dog");
  parts[1].AddText("dogs", "a dog");
  const EditCounts merged = Merged(EditCounts(), parts);
  EXPECT_EQ(merged.LetterErrorRate(), whole.LetterErrorRate());
  EXPECT_EQ(merged.WordErrorRate(), whole.WordErrorRate());
}

TEST(PackedNumbersTest, BoxesAreCountedTheSame) {
  const std::vector<TrueBox> truth = {{0, 0, 10, 10, 0}, {20, 20, 30, 30, 1}};
  AveragePrecision whole(2);
  std::vector<AveragePrecision> parts(2, AveragePrecision(2));
  for (int picture = 0; picture < 4; ++picture) {
    const std::vector<DetectedBox> found = {{0, 0, 10.0 - picture, 10, 0.9 - 0.1 * picture, 0},
                                            {20, 20, 30, 31.0 + picture, 0.5 + 0.1 * picture, 1}};
    whole.Add(found, truth);
    parts[static_cast<size_t>(picture % 2)].Add(found, truth);
  }
  const AveragePrecision merged = Merged(AveragePrecision(2), parts);
  EXPECT_EQ(merged.Map50(), whole.Map50());
  EXPECT_EQ(merged.Map50To95(), whole.Map50To95());
  EXPECT_EQ(merged.Support(1), whole.Support(1));
}

}  // namespace
}  // namespace ridge
