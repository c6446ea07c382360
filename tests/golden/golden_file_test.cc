#include "tests/golden/golden_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/golden/counter.h"

namespace ridge {
namespace {

// The expected numbers were printed by make_golden.py's functions.
TEST(Counter, GivesTheBitsOfThePythonSide) {
  EXPECT_EQ(
      CounterUniform("image.0", 3),
      (std::vector<double>{0x1.5658b1d913d70p-5, 0x1.b88cb612442d9p-1, 0x1.bfd1b9b2084eep-2}));
  EXPECT_EQ(CounterWeight("fc.weight", {2, 3})[3], 0.23152463814548027);
  EXPECT_EQ(CounterWeight("bn1.weight", {2})[1], 1.1622045555860658);
  EXPECT_EQ(CounterWeight("fc.bias", {2})[0], -0.011174346595934082);
  EXPECT_EQ(CounterPositions(1000, 4), (std::vector<int64_t>{9, 445, 559, 819}));
}

TEST(Counter, PositionsAreAllWhenThereAreFew) {
  EXPECT_EQ(CounterPositions(3, 256), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_TRUE(CounterPositions(0, 256).empty());
}

// dims 16x4x3x3: more elements than positions, as in a kernel.
class GoldenComparison : public testing::Test {
 protected:
  GoldenComparison() : x_(CounterUniform("x", 576)) {
    golden_.dims = {16, 4, 3, 3};
    for (double v : x_) {
      golden_.norm += v * v;
      golden_.sum += v;
      golden_.largest = std::max(golden_.largest, v);
    }
    golden_.norm = std::sqrt(golden_.norm);
    for (int64_t p : CounterPositions(576, 256))
      golden_.values.push_back(x_[static_cast<size_t>(p)]);
  }
  GoldenDifference Compare() const {
    return CompareWithGolden(golden_, {DType::kF64, golden_.dims}, x_.data());
  }
  // A stored position, and one that is not.
  size_t Stored() const { return static_cast<size_t>(CounterPositions(576, 256)[100]); }
  size_t NotStored() const {
    const auto positions = CounterPositions(576, 256);
    size_t at = 0;
    while (std::count(positions.begin(), positions.end(), static_cast<int64_t>(at)) > 0) ++at;
    return at;
  }

  std::vector<double> x_;
  GoldenTensor golden_;
};

TEST_F(GoldenComparison, EqualTensorsDoNotDiffer) { EXPECT_LT(Compare().Largest(), 1e-14); }

TEST_F(GoldenComparison, NamesTheChangedElement) {
  x_[Stored()] += 0.5;
  const GoldenDifference difference = Compare();
  EXPECT_EQ(difference.position, static_cast<int64_t>(Stored()));
  EXPECT_NEAR(difference.value, 0.5 / golden_.largest, 1e-12);
  const size_t at = Stored();
  EXPECT_THAT(
      difference.ToString(),
      testing::HasSubstr("at [" + std::to_string(at / 36) + "," + std::to_string(at / 9 % 4) + "," +
                         std::to_string(at / 3 % 3) + "," + std::to_string(at % 3) + "]: "));
}

TEST_F(GoldenComparison, NormAndSumSeeElementsThatAreNotStored) {
  x_[NotStored()] += 0.5;
  EXPECT_LT(Compare().value, 1e-14);
  EXPECT_GT(Compare().norm, 1e-4);
  EXPECT_GT(Compare().sum, 1e-5);
}

TEST_F(GoldenComparison, SeesAFlippedKernel) {  // which has the same norm and sum
  for (size_t k = 0; k < x_.size(); k += 9) std::reverse(x_.begin() + k, x_.begin() + k + 9);
  EXPECT_LT(Compare().norm, 1e-14);
  EXPECT_GT(Compare().value, 0.1);
}

TEST_F(GoldenComparison, ANanIsInfinitelyFarWhereverItIs) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const double kept = x_[NotStored()];
  x_[NotStored()] = nan;
  EXPECT_EQ(Compare().Largest(), infinity);
  x_[NotStored()] = kept;
  x_[Stored()] = nan;
  EXPECT_EQ(Compare().Largest(), infinity);
}

TEST_F(GoldenComparison, AGradientThatShouldBeZeroMustBeZero) {
  golden_ = {.dims = {2}, .values = {0, 0}};
  x_ = {0, 0};
  EXPECT_EQ(Compare().Largest(), 0);
  x_ = {0, 1e-300};
  EXPECT_EQ(Compare().Largest(), std::numeric_limits<double>::infinity());
}

TEST(GoldenFile, SaysWhichFileIsMissing) {
  const auto file = ReadGoldenFile("absent");
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.status().message(), testing::HasSubstr("tests/golden/absent.json"));
}

}  // namespace
}  // namespace ridge
