#include "ridge/observe/detected_boxes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace ridge {
namespace {

using Rows = std::vector<std::vector<double>>;

// Label, score and corners of each box.
Rows RowsOf(const std::vector<DetectedBox>& boxes) {
  Rows rows;
  for (const DetectedBox& b : boxes)
    rows.push_back({static_cast<double>(b.label), b.score, b.x1, b.y1, b.x2, b.y2});
  return rows;
}

std::vector<DetectedBox> RandomBoxes(std::mt19937& random) {
  std::vector<DetectedBox> boxes(80);
  const auto below = [&](int n) {
    return static_cast<double>(random() % static_cast<unsigned>(n));
  };
  for (DetectedBox& box : boxes) {
    box = {.x1 = below(12), .y1 = below(12), .score = below(6) / 5, .label = 0};
    box.label = static_cast<int64_t>(below(3));
    box.x2 = box.x1 + below(12);
    box.y2 = box.y1 + below(12);
  }
  return boxes;
}

TEST(DetectedBoxesTest, TheBetterOfTwoThatOverlapIsKept) {
  // 10x10 and 10x8 inside it: IoU 0.8.  10x10 and 10x7: 0.7, which is not above the limit.
  const std::vector<double> answers = {0, 0,  10, 10, 0.5,  //
                                       0, 0,  10, 8,  0.9,  //
                                       0, 20, 10, 30, 0.6,  //
                                       0, 20, 10, 27, 0.4};
  EXPECT_EQ(RowsOf(DetectBoxes(answers, 1, {})),
            (Rows{{0, 0.9, 0, 0, 10, 8}, {0, 0.6, 0, 20, 10, 30}, {0, 0.4, 0, 20, 10, 27}}));
}

TEST(DetectedBoxesTest, ClassesDoNotSuppressEachOther) {
  const std::vector<double> answers = {0, 0, 10, 10, 0.5, 0.1,  //
                                       0, 0, 10, 10, 0.3, 0.4};
  EXPECT_EQ(RowsOf(DetectBoxes(answers, 2, {})),
            (Rows{{0, 0.5, 0, 0, 10, 10}, {1, 0.4, 0, 0, 10, 10}}));
}

TEST(DetectedBoxesTest, APlaceAnswersForItsBestClassOrForEach) {
  const std::vector<double> answers = {1, 2, 3, 4, 0.5, 0.7, 0.25};
  EXPECT_EQ(RowsOf(DetectBoxes(answers, 3, {})), (Rows{{1, 0.7, 1, 2, 3, 4}}));
  EXPECT_EQ(RowsOf(DetectBoxes(answers, 3, {.every_class = true})),
            (Rows{{1, 0.7, 1, 2, 3, 4}, {0, 0.5, 1, 2, 3, 4}}));
  EXPECT_EQ(DetectBoxes(answers, 3, DetectionLimits::ForPrecision()).size(), 3U);
}

TEST(DetectedBoxesTest, AnswersThatAreNoNumbersAreLeftOut) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const std::vector<double> answers = {nan, 0, 1,   1, 0.9, 0.1,  //
                                       0,   0, inf, 1, 0.9, 0.1,  //
                                       0,   0, 1,   1, nan, 0.6};
  EXPECT_EQ(RowsOf(DetectBoxes(answers, 2, {})), (Rows{{1, 0.6, 0, 0, 1, 1}}));
}

TEST(DetectedBoxesTest, TheBestAreKeptWhereThereAreTooMany) {
  std::vector<double> answers;
  const auto add = [&](double at, double score) {
    for (const double number : {at, 0.0, at + 1, 1.0, score}) answers.push_back(number);
  };
  for (int64_t i = 0; i < kMostCandidates; ++i) add(0, 0.5);
  add(5, 0.9);
  add(9, 0.3);  // one too many: behind kMostCandidates better ones
  EXPECT_EQ(RowsOf(DetectBoxes(answers, 1, {})),
            (Rows{{0, 0.9, 5, 0, 6, 1}, {0, 0.5, 0, 0, 1, 1}}));
  EXPECT_EQ(RowsOf(DetectBoxes(answers, 1, {.most = 1})), (Rows{{0, 0.9, 5, 0, 6, 1}}));
}

TEST(DetectedBoxesTest, NoTwoKeptBoxesOfAClassOverlapAboveTheLimit) {
  std::mt19937 random(7);
  size_t dropped = 0;
  for (int round = 0; round < 100; ++round) {
    const std::vector<DetectedBox> boxes = RandomBoxes(random);
    const auto kept = SuppressOverlaps(boxes, {.overlap = 0.4});
    dropped += boxes.size() - kept.size();
    for (size_t i = 0; i < kept.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (kept[i].label != kept[j].label) continue;
        EXPECT_LE(Overlap(kept[i], kept[j]), 0.4);
      }
    }
  }
  EXPECT_GT(dropped, 100U);
}

TEST(DetectedBoxesTest, TheOrderOfTheBoxesDoesNotMatter) {
  std::mt19937 random(8);
  for (int round = 0; round < 100; ++round) {
    std::vector<DetectedBox> boxes = RandomBoxes(random);
    const Rows rows = RowsOf(SuppressOverlaps(boxes, {.most = 20}));
    std::shuffle(boxes.begin(), boxes.end(), random);
    EXPECT_EQ(RowsOf(SuppressOverlaps(boxes, {.most = 20})), rows);
  }
}

TEST(DetectedBoxesTest, BoxesGoBackToThePixelsOfThePicture) {
  // 200x100 in 64x64: 16 rows of padding above and below.
  const PictureFrame frame = {
      .scale_x = 0.32, .scale_y = 0.32, .top = 16, .width = 200, .height = 100};
  const DetectedBox box = InPicture({32, 24, 70, 32, 0.5, 1}, frame);
  EXPECT_EQ(RowsOf({box}), (Rows{{1, 0.5, 100, 25, 200, 50}}));
}

}  // namespace
}  // namespace ridge
