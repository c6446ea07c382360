#include "ridge/graph/ops/shared/dynamic_code.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace ridge {
namespace {

constexpr CodeSigns kBoth[] = {CodeSigns::kSigned, CodeSigns::kUnsigned};

// The published code, built as create_dynamic_map builds it: centres of equal cells by decade.
std::vector<double> PublishedValues(bool with_signs) {
  std::vector<double> values = {0, 1};
  for (int i = 0; i < 7; ++i) {
    const int cells = 1 << (with_signs ? i : i + 1);
    for (int k = 0; k < cells; ++k) {
      const double low = 0.1 + 0.9 * k / cells, high = 0.1 + 0.9 * (k + 1) / cells;
      const double value = std::pow(10.0, i - 6) * (low + high) / 2;
      values.push_back(value);
      if (with_signs) values.push_back(-value);
    }
  }
  std::sort(values.begin(), values.end());
  return values;
}

// Numbers of all magnitudes, and the borders between cells with their neighbours.
std::vector<double> Probes(CodeSigns signs) {
  std::vector<double> probes = {0, 1, 1e-300};
  for (double x = 1e-9; x < 1; x *= 1.001) probes.push_back(x);
  for (int code = 0; code + 1 < 256; ++code) {
    const double middle = (DynamicValue(signs, code) + DynamicValue(signs, code + 1)) / 2;
    for (const double near : {middle * (1 - 1e-9), middle * (1 + 1e-9)}) probes.push_back(near);
  }
  std::vector<double> all;
  for (const double x : probes) {
    if (signs == CodeSigns::kSigned) all.push_back(-x);
    if (signs == CodeSigns::kSigned || x >= 0) all.push_back(x);
  }
  std::sort(all.begin(), all.end());
  return all;
}

TEST(DynamicCode, HasThePublishedValues) {
  for (const CodeSigns signs : kBoth) {
    const std::vector<double> published = PublishedValues(signs == CodeSigns::kSigned);
    ASSERT_EQ(published.size(), 256u);
    for (int code = 0; code < 256; ++code) {
      const double value = published[static_cast<size_t>(code)];
      EXPECT_NEAR(DynamicValue(signs, code), value, 1e-14 * std::abs(value)) << code;
    }
  }
}

TEST(DynamicCode, OfAValueIsItsCode) {
  for (const CodeSigns signs : kBoth) {
    for (int code = 0; code < 256; ++code)
      EXPECT_EQ(DynamicCode(signs, DynamicValue(signs, code)), code);
  }
}

// Without signs, what is nearest to 0 but is not 0 takes the smallest value above it.
TEST(DynamicCode, IsThatOfTheNearestValue) {
  for (const CodeSigns signs : kBoth) {
    for (const double x : Probes(signs)) {
      double nearest = 1e300;
      for (int code = 0; code < 256; ++code)
        nearest = std::min(nearest, std::abs(DynamicValue(signs, code) - x));
      const int code = DynamicCode(signs, x);
      if (signs == CodeSigns::kUnsigned && code == 1 && x > 0) continue;
      EXPECT_LE(std::abs(DynamicValue(signs, code) - x), nearest * (1 + 1e-9)) << x;
    }
  }
}

TEST(DynamicCode, AscendsWithTheNumber) {
  for (const CodeSigns signs : kBoth) {
    int last = 0;
    for (const double x : Probes(signs)) {
      const int code = DynamicCode(signs, x);
      EXPECT_GE(code, last) << x;
      last = code;
    }
  }
}

TEST(DynamicCode, KeepsZeroAndOneExactly) {
  for (const CodeSigns signs : kBoth) {
    EXPECT_EQ(DynamicValue(signs, DynamicCode(signs, 0)), 0);
    EXPECT_EQ(DynamicValue(signs, DynamicCode(signs, 1)), 1);
  }
}

TEST(DynamicCode, WithoutSignsIsZeroForZeroOnly) {
  for (const double x : {1e-300, 1e-20, 1e-7}) {
    EXPECT_EQ(DynamicCode(CodeSigns::kUnsigned, x), 1);
    EXPECT_EQ(DynamicCode(CodeSigns::kSigned, x), kSignedZero);
  }
}

TEST(CodeBlocks, CountsALastShorterOne) {
  EXPECT_EQ(CodeBlocks(0), 0);
  EXPECT_EQ(CodeBlocks(1), 1);
  EXPECT_EQ(CodeBlocks(256), 1);
  EXPECT_EQ(CodeBlocks(257), 2);
}

}  // namespace
}  // namespace ridge
