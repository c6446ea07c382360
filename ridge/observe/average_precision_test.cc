#include "ridge/observe/average_precision.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace ridge {
namespace {

// A line of tests/golden/average_precision.txt (make_average_precision.py).
struct Line {
  std::string word;
  std::vector<double> numbers;
};

std::vector<Line> ReadGolden() {
  const char* root = std::getenv("RIDGE_SOURCE_DIR");
  std::ifstream file(std::string(root == nullptr ? "." : root) +
                     "/tests/golden/average_precision.txt");
  std::vector<Line> lines;
  for (std::string text; std::getline(file, text);) {
    std::istringstream words(text);
    Line line;
    words >> line.word;
    for (double number = 0; words >> number;) line.numbers.push_back(number);
    lines.push_back(line);
  }
  return lines;
}

// Pictures of a case, and what it expects.
class Replay {
 public:
  void Take(const Line& line) {
    const std::vector<double>& n = line.numbers;
    if (line.word == "case") precision_ = AveragePrecision(static_cast<int64_t>(n[0]));
    if (line.word == "found")
      found_.push_back({n[2], n[3], n[4], n[5], n[1], static_cast<int64_t>(n[0])});
    if (line.word == "true")
      truth_.push_back({n[2], n[3], n[4], n[5], static_cast<int64_t>(n[0]), n[1] != 0});
    if (line.word == "picture" || line.word == "expect") EndPicture();
    if (line.word == "expect") {
      ++cases_;
      EXPECT_NEAR(precision_.Map50().value_or(-1), n[0], 1e-9) << "case " << cases_;
      EXPECT_NEAR(precision_.Map50To95().value_or(-1), n[1], 1e-9) << "case " << cases_;
    }
    if (line.word == "class") {
      const auto c = static_cast<int64_t>(n[0]);
      EXPECT_NEAR(precision_.Ap50(c).value_or(-1), n[1], 1e-9) << "case " << cases_;
      EXPECT_NEAR(precision_.Ap50To95(c).value_or(-1), n[2], 1e-9) << "case " << cases_;
    }
  }
  int cases() const { return cases_; }

 private:
  void EndPicture() {
    precision_.Add(found_, truth_);
    found_.clear();
    truth_.clear();
  }

  AveragePrecision precision_{1};
  std::vector<DetectedBox> found_;
  std::vector<TrueBox> truth_;
  int cases_ = 0;
};

TEST(AveragePrecisionTest, MeansAreThoseOfPycocotools) {
  Replay replay;
  for (const Line& line : ReadGolden()) replay.Take(line);
  EXPECT_GE(replay.cases(), 50);
}

TEST(AveragePrecisionTest, AMissBeforeAHitHalvesThePrecision) {
  AveragePrecision precision(2);
  const std::vector<DetectedBox> found = {{20, 20, 30, 30, 0.9, 1}, {0, 0, 10, 6, 0.8, 1}};
  precision.Add(found, std::vector<TrueBox>{{0, 0, 10, 10, 1}});
  EXPECT_EQ(precision.Support(1), 1);
  EXPECT_NEAR(*precision.Ap50(1), 0.5, 1e-9);
  // IoU 0.6 reaches 0.5, 0.55 and 0.6 of ten thresholds.
  EXPECT_NEAR(*precision.Ap50To95(1), 0.15, 1e-9);
  EXPECT_EQ(precision.Map50(), precision.Ap50(1));
}

TEST(AveragePrecisionTest, WithoutTrueBoxesThereIsNoNumber) {
  AveragePrecision precision(1);
  precision.Add(std::vector<DetectedBox>{{0, 0, 9, 9, 0.9, 0}},
                std::vector<TrueBox>{{0, 0, 9, 9, 0, true}, {0, 0, 9, 9, 7}});
  EXPECT_FALSE(precision.Ap50(0));
  EXPECT_FALSE(precision.Map50To95());
}

TEST(AveragePrecisionTest, ABoxOnACrowdIsNoMiss) {
  const std::vector<DetectedBox> found = {{20, 20, 24, 24, 0.9, 0}, {0, 0, 9, 9, 0.8, 0}};
  AveragePrecision with(1), without(1);
  with.Add(found, std::vector<TrueBox>{{15, 15, 40, 40, 0, true}, {0, 0, 9, 9, 0}});
  without.Add(found, std::vector<TrueBox>{{0, 0, 9, 9, 0}});
  EXPECT_NEAR(*with.Map50(), 1.0, 1e-9);
  EXPECT_NEAR(*without.Map50(), 0.5, 1e-9);
}

}  // namespace
}  // namespace ridge
